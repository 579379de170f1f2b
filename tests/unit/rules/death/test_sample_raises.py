"""sample-raises, on Cases made by hand."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.rules.death.runs import said
from unstuck.model import Case, Exit, Flight
from unstuck.recorder.records.deaths import BatchFailed, Raised, SampleFailed, SampleInWork, WorkerExit
from unstuck.rules import death
from unstuck.rules.diagnose import diagnose


def test_an_error_that_the_script_caught_before_it_left_is_named_with_less_confidence() -> None:
    raised = Raised(type="ValueError", message="bad", frames=[("/a/t.py", 4, "Rows.__getitem__", True)])
    sample = SampleFailed(pid=6, at=1.0, raised=raised, in_work=SampleInWork(worker=0, sample=12))
    caught = Raised(type="ValueError", message="Caught")
    batch = BatchFailed(pid=5, at=1.1, raised=caught, worker=0, step=7, workers=[WorkerExit(worker=0, pid=6)])
    flights = (Flight(5, role="main", step=7), Flight(6, role="worker", worker=0))
    case = Case(
        outcome="died",
        root=5,
        exits=(Exit(5, code=1),),
        flights=flights,
        samples_failed=(sample,),
        batches_failed=(batch,),
    )
    finding = diagnose(case, death.RULES).findings[0]
    assert (finding.rule, finding.where.sample, finding.confidence) == ("sample-raises", 12, 0.8)
    went_on = (Flight(5, role="main", step=90), flights[1])
    assert said(replace(case, flights=went_on)) == []
