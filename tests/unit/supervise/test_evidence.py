"""One Case a tick, from readings of this very process; and what looks say about a standstill."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from unstuck.model import Frame, Look, Process, Thread, Wait
from unstuck.supervise.evidence import Evidence, machine
from unstuck.supervise.flight_folder import FlightFolder
from unstuck.supervise.progress import excuse, still_for
from unstuck.supervise.readings import PartsOff, Readings

ME = os.getpid()


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    lines: list[str] = []
    return Evidence(Readings(ME, FlightFolder(str(tmp_path)), 4.0, PartsOff(lines.append)), ("python", "train.py"), 4.0)


def test_the_case_is_made_once_a_tick(evidence: Evidence) -> None:
    evidence.readings.tick(100.0)
    first = evidence.case()
    assert evidence.case() is first
    assert evidence.case("died") is not first
    evidence.readings.tick(100.5)
    assert evidence.case() is not first


def test_what_changes_within_a_tick_makes_it_anew(evidence: Evidence) -> None:
    evidence.readings.tick(100.0)
    first = evidence.case()
    evidence.readings.parts["report"] = "OSError: disk full"
    assert ("report", "OSError: disk full") in evidence.case().probes_off
    evidence.note_flights()
    evidence.readings.interrupted_at = 100.2
    assert (first.interrupted, evidence.case().interrupted) == (False, True)


def test_stall_after_replaces_the_times(evidence: Evidence) -> None:
    times = evidence.case().times
    assert (times.suspect, times.proven, times.busy, times.silent) == (4.0, 4.0, 4.0, 4.0)
    assert (times.busy_ratio, times.silent_ratio) == (0.0, 0.0)


def test_a_standstill_is_kept_as_ctrl_c_found_it(evidence: Evidence) -> None:
    assert not evidence.of_the_interrupt(), "nothing stood still"
    for tick in range(10):
        evidence.readings.tick(100.0 + 0.5 * tick)
    evidence.freeze()
    (stall,) = evidence.stalls()
    evidence.readings.tick(200.0)
    assert evidence.stalls() == (stall,)
    assert evidence.of_the_interrupt()
    assert evidence.case().looks[-1].processes == (), "it was never looked at, and wrote no flight file"
    evidence.thaw()
    assert evidence.stalls() != (stall,)


def test_a_run_that_moved_at_ctrl_c_may_take_long_to_unwind(evidence: Evidence) -> None:
    evidence.readings.tick(100.0)
    evidence.freeze()
    for tick in range(20):
        evidence.readings.tick(100.5 + 0.5 * tick)
    assert evidence.stalls() == ()
    assert not evidence.of_the_interrupt()


def test_the_job_of_a_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert "scheduler" not in machine()
    monkeypatch.setenv("JOB_ID", "7")
    assert "scheduler" not in machine(), "anybody may call a variable so"
    monkeypatch.setenv("SLURM_JOB_ID", "42")
    assert machine()["scheduler"] == {"name": "Slurm", "job": "42"}
    monkeypatch.setenv("SLURM_JOB_END_TIME", "1700000000")
    assert machine()["scheduler"] == {"name": "Slurm", "job": "42", "ends": 1_700_000_000}


# --- an internal error -----------------------------------------------------------------------------------------


def test_a_part_that_fails_is_off_and_said_once() -> None:
    lines: list[str] = []
    parts = PartsOff(lines.append)

    def fails() -> None:
        raise RuntimeError("injected")

    assert not parts.attempt("memory", fails)
    assert not parts.attempt("memory", lambda: True), "it is off"
    assert parts.attempt("step trend", lambda: True)
    assert lines == ["internal error, memory is off; your training continues (RuntimeError: injected)"]
    assert parts == {"memory": "RuntimeError: injected"}


# --- what looks say --------------------------------------------------------------------------------------------


def at_line(file: str, kind: str = "running", **more: object) -> Process:
    thread = Thread(7, state="S", python=True, frames=(Frame(file, 3, "f", user=True),), wait=Wait(kind))  # type: ignore[arg-type]
    return replace(Process(7, 1, role="main", is_python=True, threads=(thread,)), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("later", "still"),
    [
        (at_line("train.py"), 9.0),
        (at_line("train.py", io_bytes=5000), 4.0),
        (at_line("train.py", rss=2 << 20), 4.0),
        (at_line("train.py", children_cpu=0.1), 4.0),
        (at_line("other.py"), 4.0),
    ],
)
def test_nothing_moved_since(later: Process, still: float) -> None:
    looks = [Look(1.0, (at_line("train.py"),), stacks=True), Look(6.0, (later,), stacks=True)]
    assert still_for([*looks, Look(10.0, (later,), stacks=True)], 7) == still
    assert still_for([], 7) == 0.0


def test_a_child_that_came_is_movement() -> None:
    alone, child = at_line("train.py"), replace(at_line("work.py"), pid=8, ppid=7)
    looks = [Look(1.0, (alone,), stacks=True), Look(2.0, (alone, child), stacks=True)]
    assert still_for(looks, 7) == 0.0


@pytest.mark.parametrize(
    ("process", "why"),
    [
        (at_line("/venv/torch/_dynamo/convert_frame.py"), "it is compiling"),
        (at_line("/venv/torch/utils/file_baton.py"), ""),
        (at_line("/usr/lib/python3.11/pdb.py", "terminal-read"), "it is at a debugger prompt"),
        (at_line("/venv/torch/serialization.py", "file"), "it is saving or loading a checkpoint"),
        (at_line("/venv/torch/serialization.py", "lock"), ""),
        (at_line("train.py", "stopped"), "it is stopped (SIGSTOP, Ctrl-Z, the freezer or a debugger)"),
        (at_line("train.py", "lock"), ""),
    ],
)
def test_what_excuses_a_standstill(process: Process, why: str) -> None:
    assert excuse(Look(1.0, (process,)), 7) == why
