"""From the stopped clock to whoever should act, on looks made by hand."""

from __future__ import annotations

from unstuck.model import Case, Flight, Frame, Look, Process, Thread, Wait
from unstuck.recorder.records.deaths import Raised, ThreadDied
from unstuck.rules.hang.chain import follow

MAIN, ONE, TWO = 10, 11, 12
THREADING = "/python/lib/python3.11/threading.py"
QUEUES = "/python/lib/python3.11/multiprocessing/queues.py"


def user(line: int, **more: str) -> Frame:
    return Frame("/project/train.py", line, "work", user=True, **more)  # type: ignore[arg-type]


def thread(tid: int, wait: Wait, *frames: Frame) -> Thread:
    return Thread(tid, python=True, wait=wait, frames=frames or (user(tid),))


def process(pid: int, *threads: Thread) -> Process:
    return Process(pid, MAIN if pid != MAIN else 1, is_python=True, threads=threads)


def reads(pid: int, *writers: int, line: int | None = None) -> Thread:
    frames = Frame(QUEUES, 1, "Queue.get"), user(line or pid)
    return thread(pid, Wait("pipe-read", target="pipe:[1]", others=writers, also_self=True), *frames)


def private(tid: int, function: str, *more: Frame) -> Thread:
    return thread(tid, Wait("lock"), Frame(THREADING, 1, function), *more)


def end(*processes: Process, case: Case | None = None) -> tuple[int, int]:
    way = follow(case or Case(), Look(1.0, processes, stacks=True), processes[0])
    return way[-1].key


def test_a_queue_leads_to_the_lock_that_its_producer_waits_for() -> None:
    waits = thread(ONE, Wait("shared-lock", others=(MAIN, TWO)), user(5, takes="archive"))
    idle = reads(TWO, MAIN)
    assert end(process(MAIN, reads(MAIN, ONE, TWO)), process(ONE, waits), process(TWO, idle)) == (ONE, ONE)


def test_two_stages_are_followed_to_the_one_that_computes() -> None:
    busy = process(TWO, thread(TWO, Wait("running")))
    assert end(process(MAIN, reads(MAIN, ONE)), process(ONE, reads(ONE, TWO)), busy) == (TWO, TWO)


def test_those_that_all_wait_for_main_leave_it_at_main() -> None:
    assert end(
        process(MAIN, reads(MAIN, ONE, TWO)), process(ONE, reads(ONE, MAIN)), process(TWO, reads(TWO, MAIN))
    ) == (
        MAIN,
        MAIN,
    )


def test_producers_that_hang_at_different_lines_decide_nothing() -> None:
    one, two = (process(pid, thread(pid, Wait("file"), user(pid))) for pid in (ONE, TWO))
    assert end(process(MAIN, reads(MAIN, ONE, TWO)), one, two) == (MAIN, MAIN)
    one, two = (process(pid, thread(pid, Wait("file"), user(7))) for pid in (ONE, TWO))
    assert end(process(MAIN, reads(MAIN, ONE, TWO)), one, two) == (ONE, ONE), "both at the same line are one cause"


def test_a_process_that_died_matters_more_than_one_that_computes() -> None:
    busy = process(ONE, thread(ONE, Wait("running")))
    gone = Case(flights=(Flight(TWO, role="helper", alive=False),))
    assert end(process(MAIN, reads(MAIN, ONE)), busy, case=gone) == (MAIN, MAIN)
    assert end(process(MAIN, reads(MAIN, ONE)), busy) == (ONE, ONE)


def test_a_future_leads_to_the_thread_that_works_at_it_not_to_idle_ones() -> None:
    main = private(MAIN, "Condition.wait", Frame("/lib/concurrent/futures/_base.py", 1, "Future.result"), user(1))
    idle = private(20, "Condition.wait")
    working = thread(21, Wait("socket", "recvfrom"), user(3))
    assert end(process(MAIN, main, idle, working)) == (MAIN, 21)
    assert end(process(MAIN, main, idle)) == (MAIN, MAIN)


def test_a_server_without_requests_is_not_waited_for() -> None:
    main = private(MAIN, "Event.wait", user(1))
    assert end(process(MAIN, main, thread(20, Wait("socket", "accept4"), user(3)))) == (MAIN, MAIN)


def test_where_a_thread_died_the_others_are_not_asked() -> None:
    main = private(MAIN, "Event.wait", user(1))
    case = Case(thread_deaths=(ThreadDied(pid=MAIN, at=1.0, thread="loader", raised=Raised(type="ValueError")),))
    assert end(process(MAIN, main, thread(20, Wait("socket", "recvfrom"), user(3))), case=case) == (MAIN, MAIN)


def test_a_lock_leads_to_its_holder() -> None:
    main = thread(MAIN, Wait("lock"), user(1, takes="self.lock"))
    holder = thread(20, Wait("file", "read"), Frame("/project/train.py", 9, "save", user=True, holds=("self.lock",)))
    assert end(process(MAIN, main, holder)) == (MAIN, 20)


def test_a_full_pipe_that_nobody_reads_ends_the_chain() -> None:
    child = process(TWO, thread(TWO, Wait("pipe-write", "write", target="pipe:[7]", others=(ONE,))))
    producer = process(ONE, thread(ONE, Wait("child", others=(TWO,))))
    assert end(process(MAIN, reads(MAIN, ONE)), producer, child) == (TWO, TWO)
