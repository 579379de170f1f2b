"""Which children get what of ours, and how: judged from what they are started with."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from unstuck.recorder import environment, guard
from unstuck.recorder.environment import ADDED, EMPTY, FOLDER, PATH, Kept

SITE, FLIGHTS = b"/ours/site", b"/tmp/flights"


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Kept:
    monkeypatch.delenv("UNSTUCK_TRACE_NAN", raising=False)
    monkeypatch.delenv("UNSTUCK_ADDED", raising=False)
    return Kept(SITE.decode(), FLIGHTS.decode())


def lacking(kept: Kept, given: dict[bytes, bytes], *words: str) -> dict[bytes, bytes]:
    return kept._lacking(words[:1] or ["python3"], list(words) or ["python3", "train.py"], given)


def test_a_cleaned_environment_gets_all_of_it(kept: Kept) -> None:
    assert lacking(kept, {}) == {PATH: SITE, FOLDER: FLIGHTS, ADDED: b"1"}
    assert lacking(kept, {PATH: b""}) == {PATH: SITE, FOLDER: FLIGHTS, ADDED: EMPTY}
    assert lacking(kept, {PATH: b"/my/own"})[PATH] == SITE + b":/my/own"


def test_a_copied_environment_is_completed_for_any_program(kept: Kept) -> None:
    assert lacking(kept, {FOLDER: FLIGHTS}, "bash", "train.sh") == {PATH: SITE}
    assert lacking(kept, {FOLDER: b"/another", PATH: SITE + b":/x"}, "bash") == {}


@pytest.mark.parametrize(
    ("words", "followed"),
    [
        (("/usr/bin/python3.11", "train.py"), True),
        (("python", "-u", "-m", "train", "-E"), True),
        (("python", "-Xfaulthandler", "-X", "dev", "-W", "error", "-c", "1"), True),
        (("pypy3", "-"), True),
        (("python", "-uE", "train.py"), False),
        (("python", "-I", "-c", "1"), False),
        (("python", "-W", "ignore", "-S", "x.py"), False),
        (("pythonic", "train.py"), False),
        (("python-config",), False),
        (("sh", "-c", "python train.py"), False),
        (("/no/such/thing",), False),
    ],
)
def test_only_a_python_that_lets_us_in(kept: Kept, words: tuple[str, ...], followed: bool) -> None:
    assert bool(lacking(kept, {}, *words)) is followed


def test_a_python_by_another_name(kept: Kept, tmp_path: Path) -> None:
    link = tmp_path / "trainer"
    link.symlink_to(sys.executable)
    assert lacking(kept, {}, str(link), "x.py")


def test_only_plain_environments_are_read(kept: Kept) -> None:
    class Odd(dict[str, str]):
        def items(self):  # type: ignore[no-untyped-def]
            raise AssertionError("it is the script's own")

    class Name:
        def __fspath__(self) -> str:
            raise AssertionError("it is the script's own")

    words = [sys.executable, "x.py"]
    for env in (Odd(), {"A": Name()}, {Name(): "1"}):
        assert kept._of_mapping(sys.executable, words, env) is env
    given = {"A": "1"}
    completed = kept._of_mapping(sys.executable, words, given)
    assert completed[b"A"] == b"1"
    assert given == {"A": "1"}
    assert kept._of_mapping(3, words, given) is given  # a descriptor


def test_what_a_child_sees(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/ours/site:/my/own::/more")
    monkeypatch.setenv("UNSTUCK_FLIGHT_DIR", "/tmp/flights")
    kept.hide()
    assert os.environ["PYTHONPATH"] == "/my/own::/more"
    assert "UNSTUCK_FLIGHT_DIR" in os.environ, "others may be started by what is copied from it"
    monkeypatch.setenv("UNSTUCK_ADDED", "1")
    monkeypatch.setenv("PYTHONPATH", "/ours/site")
    Kept(SITE.decode(), FLIGHTS.decode()).hide()
    assert not {"PYTHONPATH", "UNSTUCK_FLIGHT_DIR", "UNSTUCK_ADDED"} & set(os.environ)
    monkeypatch.setenv("UNSTUCK_ADDED", EMPTY.decode())
    monkeypatch.setenv("PYTHONPATH", "/ours/site")
    Kept(SITE.decode(), FLIGHTS.decode()).hide()
    assert os.environ["PYTHONPATH"] == ""


def test_every_wrapper_is_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("putenv", "unsetenv", "execve", "posix_spawn", "posix_spawnp")
    before = [getattr(os, name) for name in names]
    removers: list[Callable[[], None]] = []
    monkeypatch.setattr(guard, "on", lambda _, remove: removers.append(remove))
    import _posixsubprocess
    import subprocess

    forks = (_posixsubprocess.fork_exec, getattr(subprocess, "_fork_exec", None))
    environment.keep("/ours/site", "/tmp/flights")
    assert all(getattr(os, name) is not was for name, was in zip(names, before, strict=True))
    assert _posixsubprocess.fork_exec is not forks[0]
    removers[0]()
    assert [getattr(os, name) for name in names] == before
    assert (_posixsubprocess.fork_exec, getattr(subprocess, "_fork_exec", None)) == forks
