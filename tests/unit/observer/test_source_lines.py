"""What the source says about a line."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

from unstuck.model import Frame
from unstuck.observer.paths import pid_in, stated_path
from unstuck.observer.source import Source, facts_of, is_user_code

CODE = """\
import os, time
LOCK = "run.lock"

class Shard:
    def __getitem__(self, index):
        for attempt in range(3):
            while True:
                with self.lock, open(
                    self.path
                ) as file:
                    for row in file:
                        time.sleep(1)
                time.sleep(2)
            else:
                time.sleep(3)
        self.other.acquire(timeout=3)

        def inner():
            return [
                index
                for index in range(3)
            ]
        with self.lock: time.sleep(4)
        while not os.path.exists(self.path + ".done"):
            time.sleep(5)

async def step():
    async with gate:
        await work()
"""
TREE = ast.parse(CODE)


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(CODE.splitlines(), 1) if text in line)


def test_innermost_loop_and_every_with_around() -> None:
    facts = facts_of(TREE, line_of("time.sleep(1)"))
    assert facts.function == "Shard.__getitem__"
    assert facts.loop == (line_of("for row"), line_of("time.sleep(1)"))
    assert facts.holds == ("self.lock", "open(self.path)")
    assert facts.takes == ""


def test_line_after_a_with_holds_nothing() -> None:
    facts = facts_of(TREE, line_of("time.sleep(2)"))
    assert (facts.holds, facts.loop) == ((), (line_of("while True"), line_of("time.sleep(3)")))


def test_else_of_a_loop_is_outside_of_it() -> None:
    assert facts_of(TREE, line_of("time.sleep(3)")).loop == (line_of("for attempt"), line_of("time.sleep(3)"))


def test_what_a_line_takes() -> None:
    assert facts_of(TREE, line_of("with self.lock, open(")).takes == "self.lock, open(self.path)"
    assert facts_of(TREE, line_of("self.path\n".strip())).takes == "open(self.path)"
    assert facts_of(TREE, line_of("acquire")).takes == "self.other"
    assert facts_of(TREE, line_of("async with gate")).takes == "gate"
    assert facts_of(TREE, line_of("await work")).holds == ("gate",)


def test_one_line_with_may_be_either() -> None:
    facts = facts_of(TREE, line_of("time.sleep(4)"))
    assert (facts.takes, facts.holds) == ("self.lock", ("self.lock",))


def test_names_of_nested_functions() -> None:
    assert facts_of(TREE, line_of("for index in")).function == "Shard.__getitem__.<locals>.inner"
    assert facts_of(TREE, line_of("def inner")).function == "Shard.__getitem__"
    assert facts_of(TREE, line_of("LOCK")).function == ""


@pytest.mark.parametrize(
    ("test", "path"),
    [
        ("while os.path.exists(lock): pass", "lock"),
        ("while self.path.exists(): pass", "self.path"),
        ("while True:\n  open(name, 'x')", "name"),
        ("while True:\n  Path(name).open(mode='xb')", "Path(name)"),
        ("while True:\n  os.open(p, os.O_CREAT | os.O_EXCL)", "p"),
        ("while True:\n  os.link(mine, lock)", "lock"),
        ("while True:\n  open(name)", ""),
        ("while True:\n  queue.get()", ""),
        ("while not os.path.exists(lock): pass", ""),
        ("while waiting and lock.exists(): pass", "lock"),
        ("for i in range(9):\n  os.path.exists(lock)", ""),
        ("while True:\n  if not os.path.exists(lock): break\n  time.sleep(1)", "lock"),
        ("while True:\n  if not os.path.exists(stop): break\n  work()", ""),
    ],
)
def test_path_a_loop_keeps_testing(test: str, path: str) -> None:
    assert facts_of(ast.parse(test), 1).polls == path


@pytest.mark.parametrize(
    ("expression", "path"),
    [
        ("LOCK", "run.lock"),
        ("'a.lock'", "a.lock"),
        ("Path('/data') / LOCK", "/data/run.lock"),
        ("os.path.join('/data', LOCK)", "/data/run.lock"),
        ("self.path", None),
        ("f'{name}.lock'", None),
        ("unknown", None),
    ],
)
def test_path_the_source_states(expression: str, path: str | None) -> None:
    assert stated_path(TREE, expression) == path


def test_constant_set_twice_is_none() -> None:
    assert stated_path(ast.parse("LOCK = 'a'\nLOCK = 'b'"), "LOCK") is None


def test_frames_are_filled_in_and_follow_changes_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text("def f():\n    while True:\n        pass\n")
    source = Source()
    (frame,) = source.annotate((Frame("train.py", 3, "f"),), str(tmp_path))
    assert (frame.file, frame.code, frame.user, frame.loop) == (str(file), "pass", True, (2, 3))
    file.write_text("def f():\n    g = 1\n    return g + 1\n")
    os.utime(file, (1, 1))
    (frame,) = source.annotate((Frame(str(file), 3, "f"),))
    assert (frame.code, frame.loop) == ("return g + 1", None)


def test_frame_without_a_readable_source_stays_as_it_is(tmp_path: Path) -> None:
    def code(file: str, line: int) -> str:
        return Source().annotate((Frame(file, line, "f"),))[0].code

    assert code("<frozen importlib._bootstrap>", 241) == ""
    broken = tmp_path / "broken.py"
    broken.write_text("def f(:\n  match x\n")
    assert code(str(broken), 2) == "match x"
    assert code(str(broken), 99) == ""


def test_whose_code_it_is(tmp_path: Path) -> None:
    def made(*parts: str) -> str:
        file = tmp_path.joinpath(*parts)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        return str(file)

    assert is_user_code(made("project", "train.py"))
    assert is_user_code(made("project", ".venv", "scripts", "mine.py"))
    assert not is_user_code(made("project", ".venv", "lib", "python3.12", "site-packages", "torch", "x.py"))
    assert not is_user_code(made("pyenv", "lib", "python3.13t", "queue.py"))
    assert not is_user_code(made("usr", "lib", "python3", "dist-packages", "numpy", "x.py"))
    assert not is_user_code(str(tmp_path / "no-such-file.py"))
    assert not is_user_code("<string>")
    assert not is_user_code(ast.__file__)
    assert not is_user_code(facts_of.__code__.co_filename), "our own"
    assert is_user_code("/tmp/ipykernel_77/123.py"), "a notebook cell is no file"


@pytest.mark.parametrize(
    ("text", "pid"),
    [
        ("12345\n", 12345),
        ("host 7\npid: 88\n", 88),
        ('{"PID": 99}', 99),
        ("", None),
        ("1 2", None),
        ("2024-01-01", None),
    ],
)
def test_pid_in_a_lock_file(text: str, pid: int | None) -> None:
    assert pid_in(text) == pid


def test_what_may_have_gone_round_a_line() -> None:
    code = """\
def report(rank, values):
    if rank:
        return
    for value in values:
        if value < 0:
            continue
        print(value)
    for value in values:
        if value > 9:
            break
    try:
        print("all")
    finally:
        pass
"""
    tree = ast.parse(code)
    assert facts_of(tree, 2).guards == ()
    assert facts_of(tree, 7).guards == (2, 5)
    assert facts_of(tree, 12).guards == (2,), "a loop before it that is only left goes round nothing"
