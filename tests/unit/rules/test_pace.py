"""Rules about trainings that wait, on Cases made by hand: where they speak, how loud, and where they must not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from unstuck.model import Case, Fetcher, Finding, Flight, HotLine, Pace, PageCopy, Stall, Strain
from unstuck.recorder.records import Record
from unstuck.recorder.records.loaders import DataWait, GpuCopies, LoaderSettings, WorkersStarted
from unstuck.rules import rule_named
from unstuck.rules.diagnose import diagnose
from unstuck.rules.pace import (
    dataset_copied_to_workers,
    slow_host_to_device,
    starved_for_data,
    thread_oversubscription,
    too_few_workers,
    too_many_workers,
    workers_restart_every_epoch,
    workers_take_turns,
)

PID = 50
SITE = ("/job/train.py", 30, "main")
HOT = HotLine("/job/data.py", 31, "Pictures.__getitem__", "picture = decode(path)", share=0.8, samples=200)
LOCK = replace(HOT, line=40, code="with self.lock:", takes="self.lock", share=0.7, waiting="shared-lock")
MB = 10**6


def waits(**more: Any) -> DataWait:
    """What the training told: by default it waits 60 of 100 seconds, 0.6 s for each of 100 batches."""
    known: dict[str, Any] = {
        "number": 0,
        "length": 100,
        "passes": 1,
        "loaders": 1,
        "opening": 0.1,
        "since_first": 101.0,
        "site": SITE,
        "step": 100,
        "drawn": 100,
        "waited": 60.0,
        "seconds": 100.0,
        "longest": 0.6,
        "first_wait": 0.6,
        "trains": True,
    }
    return DataWait(pid=PID, at=100.0, **{**known, **more})


def loader(**more: Any) -> LoaderSettings:
    place = ("/job/data.py", 20, "g")
    known: dict[str, Any] = {"number": 0, "loader": 7, "site": SITE, "dataset": "Pictures", "dataset_site": place}
    return LoaderSettings(pid=PID, at=1.0, **{**known, **more})


def worker(**more: Any) -> Fetcher:
    return Fetcher(**{"pid": 60, "worker": 0, "busy": 1.0, "cpu": 0.95, **more})


def strain(*fetchers: Fetcher, **more: Any) -> Strain:
    known: dict[str, Any] = {"pid": PID, "at": 50.0, "seconds": 2.0, "looks": 50, "cores": 8.0, "cpu": 1.0, "hot": HOT}
    return Strain(**{**known, "fetchers": fetchers or (worker(pid=PID, worker=None),), **more})


FIELDS: dict[type[Record], str] = {
    DataWait: "data_waits", LoaderSettings: "loaders", WorkersStarted: "workers_started", GpuCopies: "gpu_copies",
}  # fmt: skip


def case(told: Record, seen: Strain | None = None, *records: Record, **more: Any) -> Case:
    flights = more.pop("flights", (Flight(PID, role="main", step=100),))
    strains = (seen,) if seen is not None else ()
    written: dict[str, Any] = {}
    for record in (loader(), *records, told):
        written.setdefault(FIELDS[type(record)], []).append(record)
    written = {name: tuple(found) for name, found in written.items()}
    return Case(root=PID, flights=flights, strains=strains, **written, **more)


def only(case: Case) -> Finding:
    (finding,) = diagnose(case).findings
    return finding


def rules(case: Case) -> list[tuple[str, str]]:
    return [(f.rule, f.severity) for f in diagnose(case).findings]


# --- starved-for-data ----------------------------------------------------------------------------------------


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


# --- workers-take-turns --------------------------------------------------------------------------------------


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


# --- too-few-workers -----------------------------------------------------------------------------------------


def test_busy_workers_and_idle_processors() -> None:
    finding = only(case(waits(workers=2), strain(worker(), worker(pid=61), cpu=2.2)))
    assert finding.rule == "too-few-workers"
    assert finding.where.line == 30, "the loader"
    assert "num_workers=5" in finding.fix.text, "two take 1 s a batch each, the training 0.4 s"
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


def test_programs_that_a_data_set_starts_need_processors_too() -> None:
    """Two workers wait for a program each, which computes all the time; of eight processors four more are free."""
    waits_for_them = strain(worker(cpu=0.05), worker(pid=61, cpu=0.05), cpu=2.2, training=0.1)
    (finding,) = too_few_workers.decide(case(waits(workers=2, waited=95.0), waits_for_them))
    assert "num_workers=7" in finding.fix.text


def test_without_workers_a_program_that_is_waited_for_takes_its_processor() -> None:
    line = replace(HOT, waiting="socket", share=0.95)
    one = strain(worker(pid=PID, worker=None, cpu=0.05), cores=1.0, cpu=0.95, training=0.05, hot=line)
    assert "num_workers" not in only(case(waits(), one)).fix.text


# --- too many, of workers and of threads ---------------------------------------------------------------------


def crowd(count: int = 8, threads: int = 1, **more: Any) -> Strain:
    workers = [worker(pid=60 + n, worker=n, cpu=1.6 / count, delayed=0.7, threads=threads) for n in range(count)]
    return strain(*workers, **{"cores": 2.0, "cpu": 1.95, "delayed": 0.3, **more})


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


def test_threads_of_workers() -> None:
    finding = only(case(waits(workers=2), crowd(2, threads=4)))
    assert finding.rule == "thread-oversubscription"
    assert "8 threads on 2 cores" in finding.title
    assert not list(thread_oversubscription.decide(case(waits(workers=2), crowd(2, threads=4, others=1.0, cpu=1.0))))
    assert not list(thread_oversubscription.decide(case(waits(workers=2), crowd(2, threads=4, cores=16.0))))
    assert not list(thread_oversubscription.decide(case(waits(workers=2, waited=1.0), crowd(2, threads=4))))


# --- what is done again for every pass -----------------------------------------------------------------------


def restarts(**more: Any) -> DataWait:
    started: dict[str, Any] = {
        "workers": 2,
        "passes": 11,
        "starts": 10,
        "starting": 20.0,
        "waited": 1.0,
        "seconds": 50.0,
    }
    return waits(**{**started, **more})


def fetched(seconds: float) -> dict[str, Any]:
    flights = [Flight(60 + n, role="worker", paces={"fetch": Pace(count=10, total=10 * seconds)}) for n in range(2)]
    return {"flights": (Flight(PID, role="main"), *flights)}


STARTED = WorkersStarted(pid=PID, at=1.0, loader=7, number=0, pids=[60, 61])


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


def test_workers_that_live_on_are_not_started_again() -> None:
    made = case(restarts(), strain(), outcome="finished")
    lives = replace(made, loaders=(loader(persistent_workers=True),))
    assert list(workers_restart_every_epoch.decide(made))
    assert not list(workers_restart_every_epoch.decide(lives))


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


# --- what the advice must not break ------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("more", "word"),
    [({}, "stay alive from epoch to epoch"), ({"changed": ["level"]}, "`level`"), ({"replaced": True}, "one dataset for all")],
)
def test_workers_that_live_on_and_what_they_would_not_see(more: dict[str, Any], word: str) -> None:
    told = waits(workers=2, starts=9, starting=50.0, waited=1.0)
    workers = WorkersStarted(pid=PID, at=2.0, loader=7, number=0, pids=[51, 52], **more)
    (finding,) = workers_restart_every_epoch.decide(case(told, None, workers, outcome="finished"))
    assert isinstance(finding, Finding)
    assert word in finding.fix.text


# --- slow-host-to-device -------------------------------------------------------------------------------------


def copies(**more: Any) -> GpuCopies:
    told: dict[str, Any] = {"number": 0, "site": SITE, "step": 99, "workers": 2, "moved": True, "trains": True}
    took = {"bytes": 80 * MB, "ordinary": 0.02, "pinned": 0.004, "pinning": 0.01, "period": 0.1, "waits": 0.0}
    return GpuCopies(pid=PID, at=9.0, **{**told, **took, **more})


def test_copies_that_take_long_are_asked_about() -> None:
    (question,) = slow_host_to_device.decide(case(copies()))
    assert "takes 20 ms as it is and 4 ms from pinned memory, 16% of a step less" in question.asks
    assert "pin_memory=True" in question.would_decide


@pytest.mark.parametrize(
    "more",
    [{"ordinary": 0.012}, {"moved": False}, {"trains": False}, {"waits": 0.2}, {"pinning": 0.09}, {"workers": 0}],
    ids=["little", "stays-on-the-cpu", "validation", "waits-for-data", "as-dear-to-pin", "no-workers"],
)
def test_copies_that_do_not_matter_are_left_alone(more: dict[str, Any]) -> None:
    assert not list(slow_host_to_device.decide(case(copies(**more))))
