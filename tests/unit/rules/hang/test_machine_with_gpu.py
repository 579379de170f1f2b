"""Hangs on the CPU, on a machine where torch has opened a GPU and started its thread for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.rules.record_cases import saved_case
from unstuck.model import Case, Process, Thread
from unstuck.rules.diagnose import diagnose


def with_gpu(process: Process) -> Process:
    of_torch = Thread(process.pid + 1_000_000, python=True, name="pt_autograd_0")
    return replace(process, device=True, threads=process.threads + (() if process.forked else (of_torch,)))


def on_gpu_machine(name: str) -> Case:
    case = saved_case(name)
    looks = tuple(replace(look, processes=tuple(map(with_gpu, look.processes))) for look in case.looks)
    return replace(case, looks=looks)


@pytest.mark.parametrize(
    ("name", "rule"), [("pool-openmp-after-fork", "lock-lost-in-fork"), ("producer-thread-died", "waits-for-nobody")]
)
def test_same_cause_as_without(name: str, rule: str) -> None:
    for case in (saved_case(name), on_gpu_machine(name)):
        assert diagnose(case).findings[0].rule == rule
