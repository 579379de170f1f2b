"""How long a run has stood that nobody watched: the kernel, the loader's numbers and the siblings are witnesses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.attach.stacks import (
    FETCH,
    IDLE,
    POLLS,
    SITE,
    USER,
    WAITS,
    case,
    frame,
    look,
    process,
    thread,
    worker_frames,
)
from unstuck.attach.blocked_for import Holdup, holdups
from unstuck.attach.inferred import flight_of, with_numbers
from unstuck.model import Case, Look, Thread, Wait
from unstuck.observer.threads import ran_at
from unstuck.rules.diagnose import diagnose
from unstuck.rules.hang.work import excess

GET = frame("/home/me/data.py", "Clips.__getitem__", 12, loop=(10, 14))
WAITING = thread(POLLS, WAITS, USER, wait=Wait("poll", timed=True), cpu=1.0)


def trained(*looks: Look) -> Case:
    """A Case with inferred flights, as attach makes it."""
    seen = [with_numbers(one) for one in looks]
    flights = [f for p in seen[-1].processes if (f := flight_of(p, seen[-1].at, seen[0].at)) is not None]
    bare = case(*seen, flights=tuple(flights))
    return replace(bare, stalls=tuple(s.stall for s in holdups(bare)))


def scene(at: float, cpu: float, sample: int = 5, siblings: tuple[float, ...] = (0.1, 0.12)) -> Look:
    """Main waits for worker 0, which computes at a sample; the others are idle."""
    others = [
        process(
            3 + number,
            thread(POLLS, replace(IDLE, arguments=(("worker_id", str(number + 1)),)), kind="poll", cpu=used),
            role="worker",
            ppid=1,
            began=-500.0,
        )
        for number, used in enumerate(siblings)
    ]
    worker = process(2, thread(GET, *worker_frames(sample, 17), cpu=cpu), role="worker", ppid=1, began=-500.0)
    return look(at, process(1, WAITING, began=-500.0), worker, *others)


def only(found: Case) -> Holdup:
    (holdup,) = holdups(found)
    return holdup


def test_worker_that_outworked_its_siblings_by_minutes_is_named_at_once() -> None:
    found = trained(scene(0.0, 300.0), scene(1.0, 301.0))
    holdup = only(found)
    assert holdup.process.pid == 2
    assert holdup.stall.suspect
    assert holdup.stall.standing == pytest.approx(300.9, abs=0.5)
    (finding,) = diagnose(found).findings
    assert (finding.rule, finding.where.sample, finding.where.worker) == ("sample-spins", 5, 0)
    assert "at least" in finding.evidence[0]
    assert "batches are dealt out in turn" in finding.evidence[1]


def test_a_sample_that_is_merely_slow_is_left_alone() -> None:
    found = trained(scene(0.0, 61.0, siblings=(58.0, 63.0)), scene(8.0, 68.0, siblings=(58.0, 63.0)))
    assert not only(found).stall.suspect
    assert not diagnose(found).findings


def test_heavy_samples_that_change_are_moving() -> None:
    found = trained(scene(0.0, 300.0, sample=5), scene(3.0, 303.0, sample=6))
    assert only(found).stall.standing == 0
    assert not diagnose(found).findings


def test_alone_its_own_batches_before_are_the_measure() -> None:
    """Batch 17 of two workers, the eighth of this one: 510 s of life give 62 s a batch, so 20 s are nothing."""
    short = trained(scene(0.0, 1.0, siblings=()), scene(20.0, 21.0, siblings=()))
    assert not diagnose(short).findings
    young = [look(at, *(replace(p, began=-8.0) for p in scene(at, at, siblings=()).processes)) for at in (0.0, 25.0)]
    assert diagnose(trained(*young)).findings[0].rule == "sample-spins"


def retries(at: float, line: int, code: str = "img = np.load(path)", inner: bool = False) -> Look:
    """The only worker, at its first sample, in a loop that swallows its errors; or in one long call from it."""
    loop = frame("/home/me/data.py", "Clips.__getitem__", line, loop=(10, 14), tries="?", code=code)
    called = [frame("/home/me/data.py", "get", 3)] if inner else []
    worker = process(2, thread(*called, loop, *worker_frames(5, 0), cpu=at, switches=int(at)), role="worker", ppid=1)
    return look(at, process(1, WAITING), worker)


def test_a_retry_that_is_seen_going_round_is_named() -> None:
    lines = (12, 11, 13, 12, 11, 12, 11)
    found = trained(*(retries(2.5 * number, line) for number, line in enumerate(lines)))
    assert diagnose(found).findings[0].rule == "sample-retries"
    asleep = trained(*(retries(2.5 * number, 13, "time.sleep(1)") for number in range(7)))
    assert diagnose(asleep).findings[0].rule == "sample-retries"


def test_one_long_call_from_a_retry_is_not() -> None:
    calls = (retries(2.5 * number, 12, "return get(url)", inner=True) for number in range(7))
    assert not diagnose(trained(*calls)).findings


def test_the_first_samples_of_a_run_have_no_measure() -> None:
    first = worker_frames(5, 0)
    worker = [process(2, thread(GET, *first, cpu=at), role="worker", ppid=1, began=-5.0) for at in (0.0, 100.0)]
    found = trained(look(0.0, process(1, WAITING), worker[0]), look(100.0, process(1, WAITING), worker[1]))
    assert not diagnose(found).findings


def test_what_cannot_be_told_apart_was_not_watched() -> None:
    nameless = frame(FETCH, "_MapDatasetFetcher.fetch", 54)
    threads = [thread(GET, nameless, WAITS, USER, cpu=at) for at in (0.0, 400.0)]
    found = trained(look(0.0, process(1, threads[0])), look(400.0, process(1, threads[1])))
    assert not diagnose(found).findings


def blocked(at: float, idle: float, switches: int = 7) -> Look:
    stuck = thread(
        USER, wait=Wait("socket", "recvfrom", target="tcp 10.0.0.1:80"), cpu=2.0, idle=idle, switches=switches
    )
    return look(at, process(1, stuck))


def test_the_kernel_remembers_when_a_blocked_thread_last_ran() -> None:
    found = trained(blocked(0.0, 3600.0), blocked(3.0, 3603.0))
    assert only(found).stall.standing == pytest.approx(3603.0)
    (finding,) = diagnose(found).findings
    assert finding.rule == "waits-on-io"
    assert finding.confidence >= 0.85


def test_a_short_wait_says_nothing_yet() -> None:
    found = trained(blocked(0.0, 2.0), blocked(3.0, 5.0))
    assert only(found).undecided
    assert not diagnose(found).findings


def waits_for_pool(at: float, cpu: float) -> Look:
    waits = thread(USER, wait=Wait("lock", "futex", timed=False), idle=400.0 + at)
    return look(at, process(1, waits), process(2, thread(USER, cpu=cpu), role="unknown", ppid=1))


def test_who_waits_for_somebody_at_work_is_not_stuck() -> None:
    found = trained(waits_for_pool(0.0, 10.0), waits_for_pool(3.0, 12.9))
    assert not only(found).stall.suspect
    assert not diagnose(found).findings


def holds_lock(at: float) -> Look:
    """Main holds a file lock that a worker waits for; the idle worker has inherited the open file."""
    wait = Wait("file-lock", "flock", timed=False, target="/x.lock", others=(1, 3))
    stuck = thread(GET, *worker_frames(5, 17), wait=wait, cpu=1.0, switches=9, idle=50.0 + at)
    lazy = thread(
        POLLS, replace(IDLE, arguments=(("worker_id", "1"),)), wait=Wait("pipe-read", timed=True), switches=int(at)
    )
    return look(
        at,
        process(1, WAITING),
        process(2, stuck, role="worker", ppid=1),
        process(3, lazy, role="worker", ppid=1),
    )


def test_idle_workers_wait_for_main_and_release_nothing() -> None:
    (finding,) = diagnose(trained(holds_lock(0.0), holds_lock(5.0))).findings
    assert (finding.rule, finding.confidence) == ("file-lock-held", 0.97)


def ranks(at: float, cpu: float) -> Look:
    collective = frame(SITE + "torch/distributed/distributed_c10d.py", "barrier")
    waits = Thread(2, state="S", python=True, frames=(collective, USER), wait=Wait("socket"), idle=90.0 + at)
    works = thread(USER, cpu=cpu)
    return look(at, process(1, works, role="rank", rank=0), process(2, waits, role="rank", rank=1))


def test_a_rank_that_waits_for_one_at_work_is_excused() -> None:
    found = trained(ranks(0.0, 10.0), ranks(3.0, 13.0))
    assert "another rank" in found.stalls[1].excuse
    assert not found.stalls[1].suspect
    assert not diagnose(found).findings


def test_ranks_that_all_stand_are_told() -> None:
    collective = frame(SITE + "torch/distributed/distributed_c10d.py", "barrier")

    def both(at: float) -> Look:
        threads = [
            Thread(n, state="S", python=True, frames=(collective, USER), wait=Wait("socket"), idle=90.0 + at)
            for n in (1, 2)
        ]
        return look(at, *(process(n, t, role="rank", rank=n - 1) for n, t in zip((1, 2), threads, strict=True)))

    assert diagnose(trained(both(0.0), both(3.0))).findings[0].rule == "waits-on-rank"


def joined(at: float, woken: int) -> Look:
    """Main joins a thread that wakes now and then."""
    joins = thread(USER, wait=Wait("lock", "futex", timed=False), idle=400.0 + at)
    other = Thread(2, state="S", python=True, frames=(USER,), wait=Wait("sleep", timed=True), switches=woken)
    return look(at, process(1, joins, other))


def test_who_waits_for_a_thread_that_wakes_is_not_stuck() -> None:
    assert not diagnose(trained(joined(0.0, 5), joined(3.0, 11))).findings


def test_ranks_that_cannot_be_seen_may_be_at_work() -> None:
    collective = frame(SITE + "torch/distributed/distributed_c10d.py", "barrier")
    alone = Thread(1, state="S", python=True, frames=(collective, USER), wait=Wait("socket"), idle=90.0)
    one = process(1, alone, role="rank", rank=1, world=2)
    found = trained(look(0.0, one), look(3.0, one))
    assert "cannot be seen" in found.stalls[0].excuse
    assert not diagnose(found).findings


def test_a_sleep_ends_by_itself() -> None:
    asleep = thread(USER, wait=Wait("sleep", timed=True), idle=20.0)
    found = trained(look(0.0, process(1, asleep)), look(3.0, process(1, asleep)))
    assert not diagnose(found).findings


def test_excess_needs_more_than_what_the_others_differ_by() -> None:
    uneven = trained(scene(0.0, 130.0, siblings=(40.0, 80.0)), scene(0.5, 130.0, siblings=(40.0, 80.0)))
    worker = uneven.looks[-1].processes[1]
    assert excess(uneven, worker) is None


def test_when_a_thread_last_ran() -> None:
    text = "python (12713, #threads: 9)\n---\nse.exec_start          :      21999556.888892\nse.vruntime : 1\n"
    assert ran_at(text) == pytest.approx(21999.556888892)
    assert ran_at("") is None
