"""Processes that a script starts again and again, on Cases made by hand."""

from __future__ import annotations

from dataclasses import replace

from unstuck.model import Case, Step, StepTrend
from unstuck.recorder.records.loaders import ProcessReady, ProcessStarting, WorkersStarted
from unstuck.rules.diagnose import diagnose
from unstuck.rules.pace import RULES

SITE = ("/a/train.py", 7, "main")


def run(start: float, task: float, epochs: int = 6, meanwhile: int = 0) -> Case:
    """Epochs of ten steps of 0.1 s; before each a process starts, then has work to do; `meanwhile` steps go on."""
    now, steps, starting, ready = 0.0, [Step(ended=0.0, seconds=0.1, number=1)], [], []
    for epoch in range(epochs):
        starting.append(ProcessStarting(pid=5, at=now, site=SITE, step=len(steps)))
        ready.append(ProcessReady(pid=100 + epoch, at=now + start, parent=5, began=now + 0.01))
        waited = 0.0 if meanwhile else start + task
        for number in range(max(10, meanwhile)):
            seconds = 0.1 + (waited if number == 0 else 0.0)
            now += seconds
            steps.append(Step(ended=now, seconds=seconds, number=len(steps) + 1))
    trends = (StepTrend(5, tuple(steps)),)
    return Case(trends=trends, processes_starting=tuple(starting), processes_ready=tuple(ready))


def said(case: Case) -> list[str]:
    return [finding.rule for finding in diagnose(case, RULES).findings]


def test_interpreters_that_start_before_each_epoch() -> None:
    case = run(start=3.0, task=0.2)
    (finding,) = diagnose(case, RULES).findings
    assert (finding.rule, finding.where.file, finding.where.line) == ("workers-restart-every-epoch", *SITE[:2])


def test_silent_where_the_work_takes_longer_than_the_start() -> None:
    assert said(run(start=1.0, task=30.0)) == []


def test_silent_where_the_training_goes_on_meanwhile() -> None:
    assert said(run(start=3.0, task=0.0, meanwhile=50)) == []


def test_silent_where_they_start_twice_or_are_workers_of_a_loader() -> None:
    assert said(run(start=5.0, task=0.2, epochs=2)) == []
    case = run(start=3.0, task=0.2)
    workers = WorkersStarted(pid=5, pids=[each.pid for each in case.processes_ready])
    assert said(replace(case, workers_started=(workers,))) == []
