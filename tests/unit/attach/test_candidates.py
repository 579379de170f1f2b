"""The list of trainings as it is printed."""

from __future__ import annotations

import json

import pytest

from unstuck.attach import candidates
from unstuck.attach.candidates import Candidate, show
from unstuck.observer.proc import Stat
from unstuck.observer.tree import Member

ONE = Candidate(412, 7_500.0, 0.034, 9, "waiting for data", "train.py --lr 0.1", "ada")
TWO = Candidate(70_123, 42.0, 3.5, 1, "computing in its own code (a_long_name.py, Model.fit)", "-m lab.train", "ada")


@pytest.fixture(autouse=True)
def nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "hidden", lambda: 0)


def test_table_is_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    show([ONE, TWO], as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "2 trainings can be looked at here"
    assert lines[3:8] == [
        "    pid   age   cpu  processes  command, and what it does",
        "    412   2 h    3%          9  train.py --lr 0.1",
        "                                waiting for data",
        "  70123  42 s  350%          1  -m lab.train",
        "                                computing in its own code (a_long_name.py,",
    ]
    assert lines[-1] == "  next: unstuck attach 412"
    assert max(map(len, lines)) <= 80


def test_users_only_where_they_differ(capsys: pytest.CaptureFixture[str]) -> None:
    other = Candidate(9, 5.0, 0.0, 1, "sleeping", "x.py", "bob")
    show([ONE, other], as_json=False)
    out = capsys.readouterr().out
    assert "user  command" in out
    assert " bob  x.py" in out


def test_those_of_others_are_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "hidden", lambda: 3)
    show([ONE, TWO], as_json=False)
    out = capsys.readouterr().out
    assert "3 Python processes of other users cannot be seen from here: sudo " in out
    show([ONE], as_json=True)
    plain = json.loads(capsys.readouterr().out)
    assert (plain["hidden"], plain["candidates"][0]["pid"]) == (3, 412)


@pytest.mark.parametrize(
    ("command", "short"),
    [
        (("/venv/bin/python", "-u", "/home/ada/train.py", "--lr", "0.1"), "train.py --lr 0.1"),
        (("python", "-m", "lab.train", "--lr", "0.1"), "-m lab.train --lr 0.1"),
        (("/usr/bin/python3", "/venv/bin/torchrun", "--nproc", "2", "t.py"), "torchrun --nproc 2 t.py"),
        (("python", "-c", "import x\nx.run()"), "-c import x x.run()"),
        (("bash", "run.sh"), "bash run.sh"),
        (("python", "t.py", "y" * 90), "t.py " + "y" * 52 + "…"),
    ],
)
def test_command_without_its_interpreter(command: tuple[str, ...], short: str) -> None:
    stat = Stat("python", "S", 1, 0.0, 0.0, 1, (0, 0))
    assert candidates._command(Member(5, 1, stat, "", command, True, False)) == short
