"""too-many-workers, on Cases made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.rules.pace.waits import STARTED, case, crowd, fetched, loader, only, rules, strain, waits, worker
from unstuck.model import Strain
from unstuck.rules.pace import (
    too_many_workers,
)


def test_more_workers_than_processors() -> None:
    (finding,) = too_many_workers.decide(case(waits(waited=1.0), crowd(), loader(number=1, num_workers=8)))
    assert finding.severity == "info"
    assert "8 workers fill 2 cores" in finding.title
    assert "unstuck tune" in finding.fix.text
    assert rules(case(waits(workers=8), crowd()))[0] == ("starved-for-data", "warning")


def test_workers_that_rest_while_the_training_waits() -> None:
    told, rest = waits(workers=1), strain(worker(busy=0.1, cpu=0.1), cpu=0.4)
    finding = only(case(told, rest, STARTED, **fetched(0.05)))
    assert (finding.rule, finding.severity) == ("too-many-workers", "warning")
    assert "num_workers=0" in finding.fix.text
    assert finding.evidence[-1].startswith("2.2× as fast")
    crowded = only(case(told, replace(rest, others=1.0, cores=2.0), STARTED, **fetched(0.05)))
    assert (crowded.rule, crowded.severity) == ("starved-for-data", "info"), "who is not let run cannot hand over"


@pytest.mark.parametrize(
    "seen",
    [crowd(2), crowd(others=1.0, cpu=1.0), crowd(cpu=0.5), crowd(delayed=0.02), crowd(cores=16.0)],
    ids=["as-many", "others", "idle", "training-undisturbed", "room"],
)
def test_workers_that_are_in_nobodys_way(seen: Strain) -> None:
    assert not list(too_many_workers.decide(case(waits(), seen)))
