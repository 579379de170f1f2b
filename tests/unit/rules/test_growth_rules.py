"""Rules about what grows, on Cases made by hand: where they speak, how loud, and where they must not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from unstuck.model import (
    Case,
    Exit,
    Finding,
    Flight,
    MemoryCurve,
    MemoryGroup,
    MemoryPoint,
)
from unstuck.recorder.records.deaths import (
    BatchFailed,
    DeviceState,
    Died,
    Owners,
    Raised,
    TensorsAlike,
    WorkerExit,
)
from unstuck.recorder.records.loops import Grower, GrowthSnapshot
from unstuck.rules.death import cuda_out_of_memory, memory_leak_in_loop, out_of_memory_kill
from unstuck.rules.diagnose import diagnose

MB = 1 << 20
PID = 50


def curve(*megabytes: float, pid: int = PID, per_step: int = 20) -> MemoryCurve:
    points = [MemoryPoint(float(n), int(mb * MB), 1 + n * per_step) for n, mb in enumerate(megabytes)]
    return MemoryCurve(pid, tuple(points))


def held(step: int = 200, device: int | None = None, **more: Any) -> GrowthSnapshot:
    """What the process answered: by default a list of losses with their graphs."""
    told: dict[str, Any] = {"holds": "Tensor", "graph": True, "bytes": 4, "times": 4, **more}
    grower = Grower(
        **{
            "path": "losses in main",
            "first": 1,
            "first_step": 1,
            "now": step,
            "site": ("train.py", 12, "main"),
            **told,
        },
        step=step,
    )
    return GrowthSnapshot(pid=PID, at=9.0, step=step, device=device, growing=[grower])


def leaking(*told: GrowthSnapshot, megabytes: tuple[float, ...] = tuple(range(300, 500, 20)), **more: Any) -> Case:
    flights = (Flight(PID, role="main", step=200),)
    return Case(root=PID, flights=flights, memory=(curve(*megabytes),), growth_snapshots=told or (held(),), **more)


def said(case: Case) -> list[tuple[str, str]]:
    return [(f.rule, f.severity) for f in memory_leak_in_loop.decide(case)]


# --- memory-leak-in-loop -------------------------------------------------------------------------------------


def test_kept_graphs_are_a_warning_with_the_line_and_the_rate() -> None:
    (finding,) = memory_leak_in_loop.decide(leaking())
    assert finding.severity == "warning"
    assert (finding.where.file, finding.where.line) == ("train.py", 12)
    assert "1 MB every step" in finding.title
    assert "losses in main grew from 1 to 200 tensors" in finding.evidence[1]


@pytest.mark.parametrize(
    "megabytes",
    [
        (300, 340, 380, 420, 430, 431, 431, 431, 431, 431),  # a warm-up
        (300, 300, 301, 300, 300, 301, 300, 300, 300, 301),
        (500, 480, 460, 440, 420, 400, 380, 360, 340, 320),
        (300, 400, 300, 400, 300, 400, 300, 400, 300, 400),
    ],
)
def test_memory_that_does_not_go_on_rising_is_no_leak(megabytes: tuple[float, ...]) -> None:
    assert said(leaking(megabytes=megabytes)) == []


def test_what_nothing_holds_is_not_named() -> None:
    assert said(replace(leaking(), growth_snapshots=())) == []
    assert said(leaking(held(times=1))) == []


def test_plain_tensors_may_be_a_buffer() -> None:
    buffer = held(graph=False, bytes=MB)
    assert said(leaking(buffer)) == []
    near = MemoryGroup("/job", 1, limit=540 * MB, pids=(PID,))
    assert said(leaking(buffer, groups=(near,))) == [("memory-leak-in-loop", "warning")]
    far = MemoryGroup("/job", 1, limit=100_000 * MB, pids=(PID,))
    assert said(leaking(buffer, groups=(far,))) == []


def test_kept_batches_count_where_they_make_the_growth() -> None:
    cycle: dict[str, Any] = {
        "kind": "cycle",
        "path": "itertools.cycle batches in main",
        "holds": "list",
        "graph": False,
    }
    assert said(leaking(held(bytes=MB, **cycle))) == [("memory-leak-in-loop", "warning")]
    assert said(leaking(held(bytes=1000, **cycle))) == []


def test_a_small_leak_is_a_note() -> None:
    slow = tuple(300 + n * 0.5 for n in range(10))
    assert said(leaking(megabytes=slow)) == [("memory-leak-in-loop", "info")]


def test_it_is_an_error_once_the_run_has_died_of_it() -> None:
    near = MemoryGroup("/job", 2, limit=500 * MB, pids=(PID,))
    assert said(leaking(groups=(near,))) == [("memory-leak-in-loop", "warning")], "it may yet come to its end"
    failed = Died(pid=PID, at=10.0, raised=Raised(type="RuntimeError", message="can't allocate memory: you tried"))
    assert said(leaking(deaths=(failed,), outcome="died")) == [("memory-leak-in-loop", "error")]


def test_memory_of_a_gpu() -> None:
    told = [held(step, device=step * MB) for step in range(20, 220, 20)]
    (finding,) = memory_leak_in_loop.decide(leaking(*told, megabytes=(300.0,) * 10))
    assert finding.title.startswith("GPU memory grows by 1 MB")


# --- out-of-memory-kill --------------------------------------------------------------------------------------


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


# --- cuda-out-of-memory --------------------------------------------------------------------------------------


def exhausted(**more: Any) -> Case:
    curve = [(1, 300 * MB), (20, 700 * MB), (60, 2000 * MB), (100, 4000 * MB), (180, 7500 * MB)]
    device = DeviceState(
        name="NVIDIA X",
        total=8000 * MB,
        allocated=7600 * MB,
        reserved=7800 * MB,
        free=100 * MB,
        owners=Owners(parameters=100 * MB, gradients=100 * MB, optimizer=200 * MB, others=3000 * MB),
        shapes=[TensorsAlike(shape=[64, 64], dtype="float32", graph=True, count=300, bytes=2900 * MB)],
        **{"curve": curve, **more},
    )
    raised = Raised(
        type="OutOfMemoryError",
        message="CUDA out of memory. Tried to allocate 128.00 MiB. GPU 0 has …",
        frames=[("/venv/torch/nn/x.py", 3, "forward", False), ("/home/train.py", 31, "main", True)],
    )
    died = Died(pid=PID, at=3.0, raised=raised, step=190, device=device)
    return Case(root=PID, outcome="died", exits=(Exit(PID, 1),), deaths=(died,))


def gpu(case: Case) -> Finding:
    (finding,) = cuda_out_of_memory.decide(case)
    return finding


def test_a_gpu_that_one_step_filled() -> None:
    finding = gpu(exhausted(curve=[(1, 300 * MB), (20, 700 * MB), (60, 700 * MB), (100, 700 * MB), (180, 701 * MB)]))
    assert (finding.where.file, finding.where.line, finding.where.step) == ("/home/train.py", 31, 190)
    assert "128.00 MiB more at step 190" in finding.evidence[0]
    assert "optimizer state 200 MB" in finding.evidence[2]
    assert "graphs or inside torch 4.1 GB" in finding.evidence[2]
    assert "smaller batch" in finding.fix.text


def test_a_gpu_that_filled_step_by_step() -> None:
    case = exhausted()
    finding = gpu(replace(case, growth_snapshots=(held(),)))
    assert finding.where.line == 12
    assert finding.also[0].line == 31
    assert "losses in main grows" in finding.title
    assert "`.item()`" in gpu(exhausted()).fix.text


def test_other_errors_are_not_called_so() -> None:
    case = exhausted()
    other = replace(case.deaths[0], raised=Raised(type="RuntimeError"))
    assert list(cuda_out_of_memory.decide(replace(case, deaths=(other,)))) == []
    assert list(cuda_out_of_memory.decide(replace(case, outcome="running"))) == []


def test_it_speaks_without_what_the_device_told() -> None:
    case = exhausted()
    assert gpu(replace(case, deaths=(replace(case.deaths[0], device=None),))).evidence
