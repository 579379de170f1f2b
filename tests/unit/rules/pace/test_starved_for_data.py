"""starved-for-data, on Cases made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.rules.pace.waits import HOT, PID, case, loader, only, rules, strain, waits, worker
from unstuck.model import Finding, Stall
from unstuck.recorder.records.loaders import DataWait
from unstuck.rules import rule_named
from unstuck.rules.pace import (
    starved_for_data,
)


def test_the_hot_line_is_named_with_the_gain_it_is_worth() -> None:
    finding = only(case(waits(), strain()))
    assert (finding.rule, finding.severity) == ("starved-for-data", "warning")
    assert (finding.where.file, finding.where.line) == ("/job/data.py", 31)
    assert "waits for data 60% of the time" in finding.title
    assert "data.py:31" in finding.title
    assert "80% of 200 stack samples" in finding.evidence[1]
    assert "it computes there" in finding.evidence[1]
    assert finding.evidence[-1].startswith("1.9× as fast"), "0.6 s for data, of which 0.48 s would go: 1 / (1 - 0.48)"
    assert "num_workers=2" in finding.fix.text, "0.6 s a batch for 0.4 s of training"


@pytest.mark.parametrize(("kind", "words"), [("sleep", "it sleeps there"), ("file", "a disk"), ("socket", "network")])
def test_what_the_line_waits_for_is_said(kind: str, words: str) -> None:
    seen = strain(worker(pid=PID, cpu=0.01), cpu=0.01, hot=replace(HOT, waiting=kind))
    assert words in only(case(waits(), seen)).evidence[1]


@pytest.mark.parametrize(
    "told",
    [
        waits(waited=9.0),
        waits(waited=4.0, seconds=6.0, drawn=100),
        waits(drawn=2),
        waits(trains=False),
        waits(waited=4.5, seconds=5.0, first_wait=30.0, drawn=100),
        waits(waited=14.1, longest=14.0, seconds=20.0, drawn=8),
        waits(waited=14.0, longest=8.0, seconds=50.0),
        waits(waited=20.0, longest=9.9, seconds=120.0),
    ],
    ids=["little", "short", "few-batches", "validation", "a-slow-start", "one-hung", "one-most", "one-of-little"],
)
def test_what_is_not_worth_a_word(told: DataWait) -> None:
    assert rules(case(told, strain())) == []


def test_a_first_batch_that_had_to_be_made_counts_in_a_short_run() -> None:
    workers = [worker(pid=60 + n, worker=n) for n in range(4)]
    told = waits(waited=4.0, seconds=4.0, drawn=8, first_wait=20.0, workers=4)
    assert starved_for_data.RULE.name in [f.rule for f in starved_for_data.decide(case(told, strain(*workers)))]


def test_while_it_runs_nothing_is_said_before_it_was_looked_why() -> None:
    assert rules(case(waits())) == []
    finding = only(case(waits(), outcome="finished"))
    assert finding.confidence < 0.9
    assert finding.where.line == 20, "the data set, where no line is known"


def test_a_line_among_many_is_not_the_cause() -> None:
    finding = only(case(waits(), strain(hot=replace(HOT, share=0.1))))
    assert finding.where.line == 20
    assert "data.py:31" not in finding.title


def test_a_machine_that_others_use_is_not_the_scripts_fault() -> None:
    kept_waiting = worker(cpu=0.2, delayed=0.8)
    told = waits(workers=1, waited=15.0)
    seen = strain(kept_waiting, cores=2.0, cpu=0.3, others=1.7)
    finding = only(case(told, seen))
    assert (finding.rule, finding.severity) == ("starved-for-data", "info")
    assert "other processes keep 1.7 cores busy" in finding.title
    assert rules(case(told, replace(seen, others=0.0))) != rules(case(told, seen))


@pytest.mark.parametrize(("waited", "severity"), [(8.0, "info"), (60.0, "warning")])
def test_what_would_be_a_second_on_a_machine_of_its_own(waited: float, severity: str) -> None:
    itself = worker(pid=PID, worker=None, cpu=0.08, delayed=0.92)
    seen = strain(itself, cores=2.0, cpu=0.08, delayed=0.92, others=1.9, hot=None)
    assert rules(case(waits(waited=waited, seconds=waited * 3), seen)) == [("starved-for-data", severity)]


def test_samples_that_sleep_are_slow_on_a_busy_machine_too() -> None:
    seen = strain(worker(pid=PID, cpu=0.01, delayed=0.01), cores=2.0, cpu=0.0, others=2.0)
    assert rules(case(waits(), seen)) == [("starved-for-data", "warning")]


def test_one_of_several_ranks_speaks() -> None:
    other = replace(waits(), pid=51)
    ranks = replace(case(waits(), strain(), other), strains=(strain(), replace(strain(), pid=51)))
    assert len(rules(ranks)) == 1


def test_a_standstill_explains_it() -> None:
    every = {"starved-for-data", "too-few-workers", "workers-take-turns", "thread-oversubscription"}
    for name in ("sample-spins", "file-lock-held", "progress-unknown"):
        rule = rule_named(name)
        assert rule is not None
        assert every <= rule.explains
    assert rules(case(waits(), strain(), stalls=(Stall(PID, "data", 1.0, 2.0),))) == [("starved-for-data", "warning")]


def test_without_workers_a_program_that_is_waited_for_takes_its_processor() -> None:
    line = replace(HOT, waiting="socket", share=0.95)
    one = strain(worker(pid=PID, worker=None, cpu=0.05), cores=1.0, cpu=0.95, training=0.05, hot=line)
    assert "num_workers" not in only(case(waits(), one)).fix.text


def test_a_stream_that_does_not_split_gets_no_workers() -> None:
    stream = replace(case(waits(), strain()), loaders=(loader(iterable=True),))
    (finding,) = starved_for_data.decide(stream)
    assert isinstance(finding, Finding)
    assert "split it by get_worker_info() first" in finding.fix.text
    assert "num_workers=" not in finding.fix.text
    splits = replace(stream, loaders=(loader(iterable=True, splits=True),))
    (finding,) = starved_for_data.decide(splits)
    assert isinstance(finding, Finding)
    assert "num_workers=" in finding.fix.text


def test_samples_at_hand_are_information() -> None:
    quick = waits(drawn=100_000, waited=60.0)
    (finding,) = starved_for_data.decide(case(quick, None, loader(batch_size=64), outcome="finished"))
    assert isinstance(finding, Finding)
    assert finding.severity == "info"
    assert "BatchSampler" in finding.fix.text


def test_a_run_without_steps_is_no_training() -> None:
    (finding,) = starved_for_data.decide(case(waits(step=0), None, outcome="finished"))
    assert isinstance(finding, Finding)
    assert finding.title.startswith("The run waits for data")
