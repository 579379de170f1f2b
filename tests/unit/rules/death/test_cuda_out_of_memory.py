"""cuda-out-of-memory, on Cases made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.unit.rules.death.leaks import MB, PID, held
from unstuck.model import (
    Case,
    Exit,
    Finding,
)
from unstuck.recorder.records.deaths import (
    DeviceState,
    Died,
    Owners,
    Raised,
    TensorsAlike,
)
from unstuck.rules.death import cuda_out_of_memory


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
