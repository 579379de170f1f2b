"""memory-leak-in-loop, on Cases made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.rules.death.leaks import MB, PID, held, leaking
from unstuck.model import (
    Case,
    MemoryGroup,
)
from unstuck.recorder.records.deaths import (
    Died,
    Raised,
)
from unstuck.rules.death import memory_leak_in_loop


def said(case: Case) -> list[tuple[str, str]]:
    return [(f.rule, f.severity) for f in memory_leak_in_loop.decide(case)]


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


@pytest.mark.parametrize(
    ("path", "fix"), [("total in main", "`total += loss.item()`"), ("norm.mean in train", "Update norm.mean with")]
)
def test_a_sum_and_a_running_mean_are_mended_differently(path: str, fix: str) -> None:
    (finding,) = memory_leak_in_loop.decide(leaking(held(path=path, kind="graph")))
    assert fix in finding.fix.text


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
