"""thread-oversubscription, on Cases made by hand."""

from __future__ import annotations

from tests.unit.rules.pace.waits import case, crowd, only, waits
from unstuck.rules.pace import (
    thread_oversubscription,
)


def test_threads_of_workers() -> None:
    finding = only(case(waits(workers=2), crowd(2, threads=4)))
    assert finding.rule == "thread-oversubscription"
    assert "8 threads on 2 cores" in finding.title
    assert not list(thread_oversubscription.decide(case(waits(workers=2), crowd(2, threads=4, others=1.0, cpu=1.0))))
    assert not list(thread_oversubscription.decide(case(waits(workers=2), crowd(2, threads=4, cores=16.0))))
    assert not list(thread_oversubscription.decide(case(waits(workers=2, waited=1.0), crowd(2, threads=4))))
