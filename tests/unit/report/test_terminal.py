"""What a person sees: complete, in order, within the width, also without colour and without Unicode."""

from __future__ import annotations

import dataclasses
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

from unstuck.model import (
    Case,
    Exit,
    Finding,
    Fix,
    Flight,
    Frame,
    Look,
    Outcome,
    Process,
    Question,
    Stall,
    Thread,
    Where,
)
from unstuck.report import code_excerpt
from unstuck.report.screen import Screen
from unstuck.report.terminal import render
from unstuck.report.wording import status_line
from unstuck.rules.diagnose import Diagnosis

SOURCE = [f"line_{n} = {n}" for n in range(1, 31)]
SOURCE[17] = "\t\tfcntl.flock(handle, fcntl.LOCK_EX)"
SOURCE[18] = "        return self.read(" + ", ".join(f"argument_{n}" for n in range(30)) + ")"

FINDING = Finding(
    rule="file-lock-held",
    family="hang",
    severity="error",
    confidence=0.97,
    title="Worker 1 waits for a lock on cache.lock that the training process itself holds, and so on and on",
    evidence=("blocked in flock(LOCK_EX) for 12 s · sample 4711", "/a/path/" + "without/any/place/to/break/" * 6),
    where=Where("train.py", 18, "Shard.__getitem__", 4242, 1, None, 4711, 12),
    fix=Fix("Release the lock before the loop.", "-    old\n+    new " + "x" * 130),
    seen_by="kernel",
    consequences=("starved-for-data: no batch for 12 s",),
    also=(Where("train.py", 25, "main", 4200),),
)
OTHER = dataclasses.replace(
    FINDING, rule="too-few-workers", severity="warning", confidence=0.75, title="Second cause", family="pace"
)
RECOVERED = dataclasses.replace(OTHER, rule="waits-on-io", withdrawn=True, title="Worker 0 waited for a file")


@pytest.fixture
def case(tmp_path: Path) -> Case:
    (tmp_path / "train.py").write_text("\n".join(SOURCE))
    return Case(
        command=("python", "-u", "train.py", "--epochs", "4"),
        cwd=str(tmp_path),
        seconds=31.2,
        flights=(
            Flight(4200, role="main", step=120, epoch=4, phase="data"),
            Flight(4242, role="worker", worker=1, sample=4711, fetching=True),
        ),
        stalls=(Stall(4200, "data", 0.0, 12.0),),
    )


def show(
    case: Case, *findings: Finding, width: int = 80, color: bool = False, unicode: bool = True, **more: str
) -> str:
    return render(case, Diagnosis(findings), Screen(color, width, unicode), next_command=more.get("next", ""))


def test_the_parts_come_in_order(case: Case) -> None:
    text = show(case, FINDING, next="unstuck report x")
    wanted = [
        "unstuck · train.py · running for 31 s · 120 steps in 4 epochs",
        "✖ Worker 1 waits for a lock",
        "file-lock-held · error · 97 % sure",
        "Evidence",
        "• blocked in flock(LOCK_EX) for 12 s",
        "train.py:18 in Shard.__getitem__ · worker 1 · pid 4242 · sample 4711",
        "❱ 18 │",
        "train.py:25 in main · pid 4200",
        "❱ 25 │ line_25 = 25",
        "Fix",
        "Release the lock before the loop.",
        "+    new",
        "What follows from it",
        "starved-for-data",
        "still running, but stuck",
        "next: unstuck report x",
    ]
    places = [text.find(part) for part in wanted]
    assert -1 not in places, wanted[places.index(-1)]
    assert places == sorted(places)
    assert text.endswith("next: unstuck report x\n")


def test_the_source_is_shown_around_the_line_and_dedented(case: Case) -> None:
    text = show(case, FINDING)
    shown = re.findall(r"^    ([❱ ]) (\d+) │ (.*)$", text, re.MULTILINE)
    assert [int(number) for _, number, _ in shown] == [15, 16, 17, 18, 19, 20, 21, 24, 25, 26]
    assert [int(number) for mark, number, _ in shown if mark == "❱"] == [18, 25]
    assert {int(number): line for _, number, line in shown}[18] == "        fcntl.flock(handle, fcntl.LOCK_EX)"


@pytest.mark.parametrize("unicode", [True, False])
@pytest.mark.parametrize("color", [True, False])
@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(case: Case, width: int, color: bool, unicode: bool) -> None:
    text = show(case, FINDING, OTHER, RECOVERED, width=width, color=color, unicode=unicode, next="unstuck report x")
    lines = re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()
    assert max(cell_len(line) for line in lines) <= width
    assert all(line == line.rstrip() for line in lines)


def test_wide_characters_count_twice(case: Case) -> None:
    wide = dataclasses.replace(FINDING, title="学習" * 60, evidence=("停止" * 60,))
    assert max(cell_len(line) for line in show(case, wide, width=60).splitlines()) <= 60


def test_without_colour_there_is_no_escape_and_with_it_the_same_text(case: Case) -> None:
    plain, colored = show(case, FINDING), show(case, FINDING, color=True)
    assert "\x1b" not in plain
    assert "\x1b[1;31m" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == plain


def test_without_unicode_there_is_only_ascii(case: Case) -> None:
    text = show(case, dataclasses.replace(FINDING, title="Größe 3 × 4 → …"), RECOVERED, unicode=False)
    assert text.isascii()
    assert "Gr??e 3 x 4 -> ..." in text
    assert "> 18 |" in text


def test_text_from_outside_cannot_steer_the_terminal(case: Case) -> None:
    evil = dataclasses.replace(FINDING, title="a\x1b[2Jb", evidence=("[bold]c\nd[/bold]", "tab\there"))
    text = show(case, evil)
    assert "\x1b" not in text
    assert "a\\x1b[2Jb" in text
    assert "[bold]c d[/bold]" in text


def test_a_file_that_is_gone_leaves_what_was_recorded(case: Case, tmp_path: Path) -> None:
    frame = Frame("train.py", 18, "f", code="fcntl.flock(handle)")
    look = Look(1.0, (Process(4242, threads=(Thread(4242, frames=(frame,)),)),))
    (tmp_path / "train.py").unlink()
    assert "❱ 18 │ fcntl.flock(handle)" in show(dataclasses.replace(case, looks=(look,)), FINDING)
    assert "│" not in show(case, FINDING)


def test_a_file_that_changed_since_is_not_quoted(case: Case) -> None:
    frame = Frame("train.py", 18, "f", code="something_else()")
    look = Look(1.0, (Process(4242, threads=(Thread(4242, frames=(frame,)),)),))
    text = show(dataclasses.replace(case, looks=(look,)), dataclasses.replace(FINDING, also=()))
    assert "❱ 18 │ something_else()" in text
    assert "changed since" in text
    assert "line_17" not in text


def test_a_source_that_never_answers_does_not_hang_us(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code_excerpt, "READ_SECONDS", 0.05)
    (tmp_path / "train.py").unlink()
    os.mkfifo(tmp_path / "train.py")
    assert "Release the lock" in show(case, FINDING)


def test_other_findings_are_short_and_recovered_ones_say_so(case: Case) -> None:
    text = show(case, RECOVERED, OTHER, FINDING)
    after = text[text.index("✖ Worker 1") :]
    assert text.index("▲ Second cause") < text.index("✖ Worker 1")  # the order of the diagnosis is kept
    assert "likely, 75 % sure" in text
    assert "❱" not in after
    assert after.index("✔ Worker 0 waited for a file") > 0
    assert "waits-on-io · recovered" in after
    assert text.count("Evidence") == 1


def test_many_findings_are_counted_not_listed(case: Case) -> None:
    text = show(case, *[FINDING] * 20)
    assert text.count("✖") == 7
    assert "and 13 more in the JSON report" in text


def test_proof_replaces_the_percentage(case: Case) -> None:
    text = show(case, dataclasses.replace(FINDING, verified="the lock released, it ran on"))
    assert "proven by experiment" in text
    assert "✔ proven: the lock released, it ran on" in text
    assert "sure" not in text


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        ("stopped", "stopped after 31 s"),
        ("interrupted", "interrupted after 31 s"),
        ("died", "killed by SIGKILL after 31 s"),
        ("finished", "finished after 31 s"),
    ],
)
def test_the_outcome_is_in_the_head_and_only_a_running_run_goes_on(case: Case, outcome: Outcome, said: str) -> None:
    ended = dataclasses.replace(case, outcome=outcome, root=1, exits=(Exit(1, signal=9),))
    text = show(ended, FINDING)
    assert said in text.splitlines()[1]
    assert "keeps watching" not in text


def test_a_saved_run_is_not_said_to_be_watched(case: Case) -> None:
    text = render(case, Diagnosis((FINDING,)), Screen(), live=False)
    assert "keeps watching" not in text
    assert "had not ended when this was saved" in text


def test_a_run_about_to_be_stopped_is_not_said_to_go_on(case: Case) -> None:
    assert "still running, but" not in render(case, Diagnosis((FINDING,)), Screen(), stopping=True)


def test_nothing_found_says_where_it_stands_or_that_all_is_well(case: Case) -> None:
    question = Question("r", "Is the peer alive?", "A look at the other host.")
    text = render(case, Diagnosis(questions=(question,)), Screen())
    assert "No progress: no batch for 12 s. The cause is not known." in text
    assert "waiting for worker 1 · sample 4711" in text
    assert "Is the peer alive?" in text
    well = dataclasses.replace(case, stalls=(), outcome="finished")
    assert "✔ Nothing found." in show(well)
    dead = dataclasses.replace(case, stalls=(), outcome="died", root=1, exits=(Exit(1, code=7),))
    assert "No rule explains this death: died with exit code 7 after 31 s" in show(dead)
    assert "last seen in phase data · waiting for worker 1 · sample 4711" in show(dead)


def test_what_could_not_be_seen_is_said(case: Case) -> None:
    blind = dataclasses.replace(
        case, looks=(Look(1.0, trouble=("no stacks: sudo sysctl x",)),), probes_off=(("p", "w"),)
    )
    text = show(blind, FINDING)
    assert "no stacks: sudo sysctl x" in text
    assert "• p: w" in text


def test_the_status_line(case: Case) -> None:
    stall = case.stalls[0]
    whole = "unstuck: no batch for 12 s · waiting for worker 1 · sample 4711 · finding out why …"
    assert status_line(stall, case, Screen(width=100)) == whole
    assert status_line(stall, case, Screen(width=40)) == whole[:38] + "…"
    excused = dataclasses.replace(stall, phase="backward", excuse="compiling")
    assert status_line(excused, case, Screen(width=100)) == "unstuck: in backward for 12 s · compiling, not counted"
    assert status_line(stall, case, Screen(width=60, unicode=False)).isascii()


def test_the_status_names_the_sample_of_the_present_workers(case: Case) -> None:
    earlier = Flight(4000, role="worker", worker=1, sample=1, began=-1.0)
    crowd = dataclasses.replace(
        case, flights=(earlier, *case.flights, dataclasses.replace(earlier, began=9, alive=False))
    )
    assert "sample 4711" in status_line(case.stalls[0], crowd, Screen(width=100))


def test_status_and_import_do_without_rich() -> None:
    code = (
        "import sys; from unstuck.model import *; from unstuck.report.screen import Screen;"
        "import unstuck.report.terminal; from unstuck.report.wording import status_line;"
        "status_line(Stall(1, 'data', 0, 12), Case(), Screen()); sys.exit('rich' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert Screen.of(_Terminal()).color
    assert not Screen.of(io.StringIO()).color
    monkeypatch.setenv("TERM", "dumb")
    assert not Screen.of(_Terminal()).color
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not Screen.of(_Terminal()).color


@pytest.mark.parametrize(
    ("encoding", "wanted"), [("utf-8", True), ("UTF8", True), ("latin-1", False), ("ascii", False)]
)
def test_unicode_is_for_streams_that_can(encoding: str, wanted: bool) -> None:
    assert Screen.of(io.TextIOWrapper(io.BytesIO(), encoding=encoding)).unicode is wanted
