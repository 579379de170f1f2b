"""workers-restart-every-epoch, on Cases made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.rules.pace.waits import PID, STARTED, case, fetched, loader, only, restarts, strain, waits, worker
from unstuck.model import Finding
from unstuck.recorder.records.loaders import DataWait, WorkersStarted
from unstuck.rules.pace import (
    workers_restart_every_epoch,
)


def test_workers_that_are_started_again() -> None:
    finding = only(case(restarts(), None, STARTED, outcome="finished", **fetched(0.1)))
    assert finding.rule == "workers-restart-every-epoch"
    assert "38%" in finding.title, "20 s, less what ten batches take anyway, of 50 s"
    assert "persistent_workers=True" in finding.fix.text
    assert finding.evidence[-1].startswith("1.6× as fast")


@pytest.mark.parametrize(
    ("told", "batch"),
    [(restarts(starting=2.0), 0.1), (restarts(), 1.9), (restarts(starts=2), 0.1), (restarts(workers=0), 0.1)],
    ids=["cheap", "batches-take-as-long", "two-passes", "no-workers"],
)
def test_passes_that_begin_as_they_must(told: DataWait, batch: float) -> None:
    made = case(told, None, STARTED, outcome="finished", **fetched(batch))
    assert not list(workers_restart_every_epoch.decide(made))


def test_on_a_machine_that_others_use_starting_takes_longer() -> None:
    idle = worker(busy=0.0, cpu=0.0)
    crowded = strain(idle, cores=2.0, cpu=0.12, training=0.07, delayed=0.63, others=1.9, hot=None)
    alone = replace(crowded, delayed=0.0, others=0.0)
    told = restarts(starting=4.0, seconds=15.0)
    assert not list(workers_restart_every_epoch.decide(case(told, crowded, STARTED, outcome="finished")))
    assert list(workers_restart_every_epoch.decide(case(told, alone, STARTED, outcome="finished")))


def test_workers_that_live_on_are_not_started_again() -> None:
    made = case(restarts(), strain(), outcome="finished")
    lives = replace(made, loaders=(loader(persistent_workers=True),))
    assert list(workers_restart_every_epoch.decide(made))
    assert not list(workers_restart_every_epoch.decide(lives))


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({}, "stay alive from epoch to epoch"),
        ({"changed": ["level"]}, "`level`"),
        ({"replaced": True}, "one dataset for all"),
    ],
)
def test_workers_that_live_on_and_what_they_would_not_see(more: dict[str, Any], word: str) -> None:
    told = waits(workers=2, starts=9, starting=50.0, waited=1.0)
    workers = WorkersStarted(pid=PID, at=2.0, loader=7, number=0, pids=[51, 52], **more)
    (finding,) = workers_restart_every_epoch.decide(case(told, None, workers, outcome="finished"))
    assert isinstance(finding, Finding)
    assert word in finding.fix.text
