"""The proof that nobody can move again, on looks made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unstuck.model import Case, Flight, Look, Process, Thread, Wait
from unstuck.rules.hang.deadlock import deadlocked

MAIN, CHILD = 10, 11


def process(pid: int, wait: Wait, ppid: int = MAIN) -> Process:
    return Process(pid, ppid, is_python=True, threads=(Thread(pid, python=True, wait=wait, switches=5),))


def stuck(*processes: Process, flights: tuple[Flight, ...] = ()) -> frozenset[int]:
    """Two looks that show the same."""
    return deadlocked(Case(looks=tuple(Look(at, processes, stacks=True) for at in (1.0, 2.0)), flights=flights))


PARENT = process(MAIN, Wait("child", others=(CHILD,)), ppid=1)
WRITER = process(CHILD, Wait("pipe-write", others=(MAIN,)))


def test_two_that_wait_for_each_other_can_never_move() -> None:
    assert stuck(PARENT, WRITER) == {MAIN, CHILD}


@pytest.mark.parametrize(
    "wait",
    [
        Wait("running"),
        Wait("sleep"),
        Wait("pipe-write", others=(99,)),
        Wait("pipe-write", others=(MAIN,), timed=True),
        Wait("pipe-read"),
        Wait("pipe-read", fd=0, others=(MAIN,)),
        Wait("shared-lock"),
    ],
    ids=["runs", "sleeps", "stranger", "timed", "unseen", "stdin", "unknown-lock"],
)
def test_one_that_may_move_frees_who_waits_for_it(wait: Wait) -> None:
    assert stuck(PARENT, process(CHILD, wait)) == frozenset()


def test_one_that_ran_between_the_looks_frees_who_waits_for_it() -> None:
    ran = replace(WRITER, threads=(replace(WRITER.threads[0], switches=6),))
    looks = (Look(1.0, (PARENT, WRITER), stacks=True), Look(2.0, (PARENT, ran), stacks=True))
    assert deadlocked(Case(looks=looks)) == frozenset()


def test_main_waits_for_the_worker_that_owes_its_batch() -> None:
    main = process(MAIN, Wait("poll", timed=True), ppid=1)
    worker = replace(process(CHILD, Wait("lock")), role="worker", worker=0)
    flights = (Flight(MAIN, phase="data"), Flight(CHILD, role="worker", phase="fetch", fetching=True))
    assert stuck(main, worker, flights=flights) == {MAIN, CHILD}
    assert stuck(main, worker, flights=flights[:1]) == {CHILD}, "nobody is known to owe it a batch"


def test_one_look_proves_nothing() -> None:
    assert deadlocked(Case(looks=(Look(1.0, (PARENT, WRITER), stacks=True),))) == frozenset()
