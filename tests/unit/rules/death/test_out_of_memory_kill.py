"""out-of-memory-kill, on Cases made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.rules.death.leaks import MB, PID, curve, leaking
from unstuck.model import (
    Case,
    Exit,
    Flight,
    MemoryGroup,
)
from unstuck.recorder.records.deaths import (
    BatchFailed,
    Raised,
    WorkerExit,
)
from unstuck.rules.death import out_of_memory_kill
from unstuck.rules.diagnose import diagnose


def killed(group: MemoryGroup | None, signal: int | None = 9, **more: Any) -> Case:
    groups = (group,) if group else ()
    return replace(leaking(), outcome="died", exits=(Exit(PID, None if signal else 1, signal),), groups=groups, **more)


COUNTED = MemoryGroup("/job", 1, 512 * MB, 500 * MB, 512 * MB, kills_before=2, kills=3, pids=(PID, 77))


def test_a_kill_that_the_kernel_counted() -> None:
    (finding,) = out_of_memory_kill.decide(killed(COUNTED))
    assert finding.confidence > 0.9
    assert "rose from 2 to 3" in finding.evidence[0]
    assert "from 300 MB at step 1 to 480 MB at step 181" in finding.evidence[1]
    assert "losses in main" in finding.evidence[-1]
    assert finding.where.line == 12


@pytest.mark.parametrize(
    "group",
    [
        None,
        replace(COUNTED, kills=2),
        replace(COUNTED, pids=(77,)),
        replace(COUNTED, kills_before=-1, kills=-1, peak=9),
    ],
)
def test_a_sigkill_alone_proves_nothing(group: MemoryGroup | None) -> None:
    assert list(out_of_memory_kill.decide(killed(group))) == []


def test_a_counter_that_says_no_is_believed_even_at_the_limit() -> None:
    whole = MemoryGroup("", 0, 480 * MB, 470 * MB, 470 * MB, kills_before=0, kills=5, pids=(PID,))
    case = killed(replace(COUNTED, kills=2, limit=490 * MB))
    assert list(out_of_memory_kill.decide(replace(case, groups=(*case.groups, whole)))) == []


def test_without_a_counter_the_limit_itself_tells() -> None:
    blind = replace(COUNTED, kills_before=-1, kills=-1, limit=500 * MB, peak=499 * MB)
    (finding,) = out_of_memory_kill.decide(killed(blind))
    assert finding.confidence < 0.8
    whole = MemoryGroup("", 0, 600 * MB, 590 * MB, 590 * MB, kills_before=0, kills=1, pids=(PID,))
    (finding,) = out_of_memory_kill.decide(killed(whole))
    assert "the machine's 600 MB were used up" in finding.title


def test_a_worker_is_named_and_what_main_makes_of_it_is_beneath() -> None:
    workers = [WorkerExit(worker=1, pid=77, exitcode=-9), WorkerExit(worker=0, pid=76)]
    failed = BatchFailed(pid=PID, at=9.0, raised=Raised(type="RuntimeError", message="killed"), workers=workers)
    curves = (curve(300, 301), curve(100, 400, pid=77))
    case = killed(COUNTED, signal=None, growth_snapshots=(), batches_failed=(failed,), memory=curves)
    flights = (Flight(PID, role="main", step=9, ended=True), Flight(77, role="worker", worker=1, alive=False))
    (finding,) = out_of_memory_kill.decide(replace(case, flights=flights))
    assert finding.where.worker == 1
    assert finding.title.startswith("Worker 1 (pid 77) was OOM-killed")


def test_bare_flight_files_are_enough() -> None:
    case = replace(killed(COUNTED), exits=(), flights=(Flight(PID, role="main", step=9, alive=False),))
    (finding,) = out_of_memory_kill.decide(case)
    assert 0.8 < finding.confidence < 0.9
    assert list(out_of_memory_kill.decide(replace(case, outcome="running"))) == []


def test_the_leak_is_shown_beneath_the_kill() -> None:
    findings = diagnose(killed(COUNTED)).findings
    assert [f.rule for f in findings] == ["out-of-memory-kill"]
    assert any(line.startswith("memory-leak-in-loop") for line in findings[0].consequences)
