"""too-few-workers, on Cases made by hand."""

from __future__ import annotations

import pytest

from tests.unit.rules.pace.waits import case, only, strain, waits, worker
from unstuck.model import Strain
from unstuck.rules.pace import (
    too_few_workers,
)


def test_busy_workers_and_idle_processors() -> None:
    finding = only(case(waits(workers=2), strain(worker(), worker(pid=61), cpu=2.2)))
    assert finding.rule == "too-few-workers"
    assert finding.where.line == 30, "the loader"
    assert "num_workers=5" in finding.fix.text, "two take 1 s a batch each, the training 0.4 s"
    assert finding.evidence[-1] == "2.5× as fast with 5 workers"
    assert finding.also[0].line == 31


@pytest.mark.parametrize(
    "seen",
    [
        strain(worker(), worker(pid=61), cores=2.0, cpu=2.0),
        strain(worker(busy=0.4), worker(pid=61, busy=0.4)),
        strain(worker(), worker(pid=61), cores=8.0, cpu=2.2, others=6.0),
        strain(worker(cpu=0.05), worker(pid=61, cpu=0.05), cores=2.0, cpu=1.7, training=0.1),
    ],
    ids=["no-processor-left", "they-rest", "others-have-them", "programs-they-start-have-them"],
)
def test_more_workers_would_not_help(seen: Strain) -> None:
    assert not list(too_few_workers.decide(case(waits(workers=2), seen)))


def test_workers_that_wait_need_no_processors() -> None:
    asleep = strain(worker(cpu=0.01), cores=1.0, cpu=0.1)
    (finding,) = too_few_workers.decide(case(waits(workers=1), asleep))
    assert "num_workers=3" in finding.fix.text
    assert finding.evidence[-1] == "2.5× as fast with 3 workers; they mostly wait, which takes no core"


def test_workers_that_wait_need_none_either_where_others_have_them_all() -> None:
    """Each time they wake up it takes a while until they run: what they need of a core is still next to nothing."""
    asleep = strain(worker(cpu=0.01, delayed=0.4), cores=1.0, cpu=0.1, others=0.9)
    (finding,) = too_few_workers.decide(case(waits(workers=1), asleep))
    assert "num_workers=3" in finding.fix.text


@pytest.mark.parametrize(
    ("seen", "wanted"),
    [
        (strain(worker(cpu=0.5, delayed=0.5), cpu=0.6), 3),
        (strain(worker(cpu=0.5, delayed=0.5), cores=3.0, cpu=0.6), 2),
        (strain(worker(cpu=1.0, delayed=3.0, threads=4), cores=6.0, cpu=1.1), 0),
    ],
    ids=["cores-enough", "two-left", "four-threads-each"],
)
def test_a_worker_that_gets_half_a_core_would_fill_one(seen: Strain, wanted: int) -> None:
    fixes = [finding.fix.text for finding in too_few_workers.decide(case(waits(workers=1), seen)) if finding.fix]
    assert [f"num_workers={wanted}" in fix for fix in fixes] == [True] * bool(wanted)


def test_programs_that_a_data_set_starts_need_processors_too() -> None:
    """Two workers wait for a program each, which computes all the time; of eight processors four more are free."""
    waits_for_them = strain(worker(cpu=0.05), worker(pid=61, cpu=0.05), cpu=2.2, training=0.1)
    (finding,) = too_few_workers.decide(case(waits(workers=2, waited=95.0), waits_for_them))
    assert "num_workers=7" in finding.fix.text
