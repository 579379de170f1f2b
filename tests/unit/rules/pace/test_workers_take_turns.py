"""workers-take-turns, on Cases made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.rules.pace.waits import HOT, case, only, strain, waits, worker
from unstuck.model import Strain
from unstuck.rules.pace import (
    workers_take_turns,
)

LOCK = replace(HOT, line=40, code="with self.lock:", takes="self.lock", share=0.7, waiting="shared-lock")


def in_turn(**more: Any) -> Strain:
    workers = [worker(pid=60 + n, worker=n, blocked=0.75, cpu=0.02) for n in range(4)]
    return strain(*workers, **{"together": 50, "alone": 48, "lock": LOCK, "hot": LOCK, "cpu": 0.1, **more})


def test_workers_behind_a_lock() -> None:
    finding = only(case(waits(workers=4), in_turn()))
    assert finding.rule == "workers-take-turns"
    assert finding.where.line == 40
    assert "48 of 50 snapshots" in finding.evidence[0]
    assert "self.lock" in finding.fix.text
    assert finding.evidence[-1].startswith("2.5× as fast"), "then the training itself is what takes time"
    assert any(line.startswith("starved-for-data") for line in finding.consequences)


@pytest.mark.parametrize(
    "seen",
    [in_turn(alone=25), in_turn(together=5, alone=5), strain(*in_turn().fetchers[:1], together=50, alone=50)],
    ids=["side-by-side", "hardly-seen", "one-worker"],
)
def test_workers_that_do_not_wait_for_each_other(seen: Strain) -> None:
    assert not list(workers_take_turns.decide(case(waits(workers=4), seen)))


def test_a_lock_that_is_hardly_waited_for() -> None:
    free = strain(*(replace(f, blocked=0.1) for f in in_turn().fetchers), together=50, alone=50)
    assert not list(workers_take_turns.decide(case(waits(workers=4), free)))
