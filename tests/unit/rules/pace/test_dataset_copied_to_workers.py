"""dataset-copied-to-workers, on Cases made by hand."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.rules.pace.waits import MB, STARTED, case, fetched, only, restarts, waits
from unstuck.model import Case, PageCopy
from unstuck.recorder.records.loaders import RepeatedPickles
from unstuck.rules.pace import (
    dataset_copied_to_workers,
)


def test_what_is_pickled_at_every_start_is_the_cause_of_it() -> None:
    told = restarts(pickled=80 * MB, pickling=9.0, opening=11.0)
    finding = only(case(told, None, STARTED, outcome="finished", **fetched(0.1)))
    assert (finding.rule, finding.severity) == ("dataset-copied-to-workers", "warning")
    assert "76 MB" in finding.title
    assert any(line.startswith("workers-restart-every-epoch") for line in finding.consequences)
    small = restarts(pickled=80_000, pickling=0.01, opening=11.0)
    assert only(case(small, None, STARTED, outcome="finished")).rule == "workers-restart-every-epoch"


def test_large_copies_that_cost_no_time_are_a_note() -> None:
    large = replace(STARTED, pickled=400 * MB, pickling=0.5)
    (finding,) = dataset_copied_to_workers.decide(case(waits(waited=1.0), None, large))
    assert finding.severity == "info"


def test_pages_that_become_the_workers_own() -> None:
    read = PageCopy(60, 8.0, 50 * MB, 900 * MB, 450 * MB, 480 * MB)
    made = case(waits(waited=1.0), copies=(read, replace(read, pid=61)))
    (finding,) = dataset_copied_to_workers.decide(made)
    assert (finding.severity, finding.where.line) == ("info", 20)
    own = replace(read, shared=900 * MB)  # memory that it asked for itself
    assert not list(dataset_copied_to_workers.decide(replace(made, copies=(own, own))))


def test_sent_again_with_every_job() -> None:
    line = ("/p/train.py", 25, "Evolution.generation")
    sent = RepeatedPickles(
        pid=7, name="Evolution.windows", size=3 << 20, line=line, messages=900, bytes=900 * 3 << 20, sending=3.0,
        seconds=10.0,
    )  # fmt: skip
    (finding,) = dataset_copied_to_workers.decide(Case(repeated_pickles=(sent,)))
    assert (finding.severity, finding.where.line) == ("warning", 25)
    assert finding.title.startswith("30% of the time goes into sending `Evolution.windows`")
    for few in (replace(sent, sending=1.0), replace(sent, seconds=60.0)):
        assert not list(dataset_copied_to_workers.decide(Case(repeated_pickles=(few,))))
