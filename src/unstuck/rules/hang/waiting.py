"""What a thread waits for, or does for others, by the frames it is in."""

from __future__ import annotations

from itertools import takewhile

from unstuck.model import Frame, Process, Thread
from unstuck.rules.rank_positions import collective_call as collective_call

LOCK = "lock"
EVENT = "event"
GET = "queue get"
PUT = "queue put"
JOIN = "join"
FUTURE = "future"
BARRIER = "barrier"
COROUTINE = "coroutine"

_QUEUE = {"put": PUT, "get": GET, "join": GET}
_THREADING = {
    **dict.fromkeys(("join", "_wait_for_tstate_lock", "_shutdown", "_join_os_thread"), JOIN),
    **dict.fromkeys(("_enter", "_wait"), BARRIER),
    **dict.fromkeys(("wait", "wait_for"), EVENT),
}
_FUTURES = dict.fromkeys(("result", "exception", "wait", "result_iterator", "_result_or_cancel"), FUTURE)
_PROCESS = dict.fromkeys(("wait", "join", "poll"), JOIN)
_WAITING_CALLS = (  # what functions of the standard library wait for, by a part of their file's path
    ("/queue.py", _QUEUE),
    ("multiprocessing/queues.py", _QUEUE),
    ("concurrent/futures/", _FUTURES),
    ("multiprocessing/pool.py", {"wait": FUTURE, "get": FUTURE, "next": FUTURE, "join": JOIN}),
    ("/threading.py", _THREADING),
    ("multiprocessing/synchronize.py", _THREADING),
    ("multiprocessing/popen_fork.py", _PROCESS),
    ("multiprocessing/process.py", _PROCESS),
)
_PROXIED = {  # methods of what a multiprocessing.Manager keeps for others
    **dict.fromkeys(("acquire", "__enter__"), LOCK),
    **dict.fromkeys(("wait", "wait_for"), EVENT),
    **_QUEUE,
}
_POOL_WORKERS = (("concurrent/futures/thread.py", "_worker"), ("multiprocessing/pool.py", "worker"))
_HOUSEKEEPING = ("torch/utils/data/_utils/pin_memory.py", "tqdm/_monitor.py", "multiprocessing/resource_sharer.py")


def awaited(thread: Thread) -> str:
    """One of the words above for a thread in a lock-like wait; the outermost standard frame decides."""
    word = LOCK
    for frame in thread.frames:
        if frame.user:
            break
        word = _word(frame) or word
    if word != LOCK or not thread.frames:
        return word
    innermost = thread.frames[0]
    if ".join()" in innermost.code.replace(" ", ""):
        return JOIN
    return EVENT if ".wait()" in innermost.code and not innermost.takes else LOCK


def _word(frame: Frame) -> str:
    function = frame.function.rpartition(".")[2]
    for part, words in _WAITING_CALLS:
        if part in frame.file:
            word = words.get(function, "")
            in_barrier = words is _THREADING and "barrier" in frame.function.lower()
            return BARRIER if in_barrier and word != JOIN else word
    return ""


def proxied_call(thread: Thread) -> str:
    """What a thread waits for at an object that a multiprocessing.Manager keeps; empty if it asks none."""
    functions = [frame.function.rpartition(".")[2] for frame in thread.frames]
    asked = [
        f.file.endswith("multiprocessing/managers.py") and f.function.endswith("_callmethod") for f in thread.frames
    ]
    return _PROXIED.get(functions[asked.index(True) + 1], "") if any(asked[:-1]) else ""


def keeps_for_others(process: Process) -> bool:
    """The process of a multiprocessing.Manager."""
    main = process.main_thread
    return main is not None and waits_in(main, "multiprocessing/managers.py", "serve_forever") is not None


def answers_others(thread: Thread) -> bool:
    """A thread of such a process that only waits for whoever comes."""
    served = ("serve_forever", "accepter")
    return any(waits_in(thread, "multiprocessing/managers.py", function) is not None for function in served)


def until_done(thread: Thread) -> bool:
    """It waits until others have ended or have done their tasks: whatever holds these up is the cause."""
    wait = thread.wait
    return wait is not None and (wait.kind == "child" or (wait.kind == "lock" and awaited(thread) in (JOIN, FUTURE)))


def in_pool(thread: Thread) -> bool:
    """It runs a task of a pool of threads or processes."""
    return any(waits_in(thread, file, function) is not None for file, function in _POOL_WORKERS)


def waits_inside(thread: Thread) -> bool:
    """A wait that another thread of the same process must end, and that is not for a lock the line itself takes."""
    return thread.wait is not None and thread.wait.kind == "lock" and awaited(thread) != LOCK


def waits_in(thread: Thread, file: str, function: str) -> Frame | None:
    """The frame of the thread that is in this function."""
    return next((f for f in thread.frames if f.file.endswith(file) and f.function.endswith(function)), None)


def in_collective(thread: Thread) -> bool:
    return collective_call(thread) is not None


def in_event_loop(thread: Thread) -> bool:
    """asyncio waits, for whatever may come: a server without requests is not stuck."""
    return waits_in(thread, "asyncio/base_events.py", "_run_once") is not None


def blocks_event_loop(thread: Thread) -> bool:
    """A coroutine of the user's waits without `await`: nothing else runs in its asyncio loop meanwhile."""
    inside = takewhile(lambda frame: not frame.function.endswith("_run_once"), thread.frames)
    return in_event_loop(thread) and any(frame.user for frame in inside)


def idle_event_loop(thread: Thread) -> bool:
    """An asyncio loop with nothing to run: no timer set, and no descriptor but its own wake-up pipe."""
    wait = thread.wait
    if wait is None or wait.timed or wait.kind not in ("poll", "socket", "pipe-read") or wait.others or wait.fd is None:
        return False  # several descriptors: it serves somebody
    return in_event_loop(thread)


def reads_input(thread: Thread) -> bool:
    """It reads standard input."""
    wait = thread.wait
    if wait is None:
        return False
    return wait.kind == "terminal-read" or (wait.fd == 0 and wait.kind in ("pipe-read", "socket", "file"))


def reads_queue(thread: Thread) -> bool:
    """It is inside a multiprocessing queue or connection."""
    files = ("multiprocessing/queues.py", "multiprocessing/connection.py")
    return any(frame.file.endswith(files) for frame in thread.frames if not frame.user)


def feeds_queue(thread: Thread) -> bool:
    """The feeder thread of a multiprocessing queue."""
    return waits_in(thread, "multiprocessing/queues.py", "_feed") is not None


def draws_from_sampler(thread: Thread) -> bool:
    """The user's code runs because the loader wants the next indices."""
    loader = next((f for f in thread.frames if f.file.endswith("torch/utils/data/dataloader.py")), None)
    return loader is not None and loader.function.rpartition(".")[2] == "_next_index"


def is_housekeeping(thread: Thread) -> bool:
    """A library's thread that wakes now and then and never releases anything of the user's."""
    if not thread.frames:
        return thread.name.startswith("pt_autograd")  # of torch, on a machine with a GPU: Python has run in it once
    return any(part in frame.file for frame in thread.frames for part in _HOUSEKEEPING)


def lock_name(thread: Thread) -> str:
    """The expression of the lock that is being taken, from the innermost frame that says so."""
    for frame in thread.frames[:4]:
        if frame.takes:
            return frame.takes
        if frame.user:
            break
    return ""


def same_lock(one: str, other: str) -> bool:
    """`self.lock` here and `store.lock` there: the same last name may be the same lock."""
    return bool(one) and bool(other) and one.rpartition(".")[2] == other.rpartition(".")[2]


def holding_frame(thread: Thread, name: str, skip: int = 0) -> Frame | None:
    """Frame of the thread that lies inside a `with` of that lock."""
    return next((f for f in thread.frames[skip:] if any(same_lock(held, name) for held in f.holds)), None)
