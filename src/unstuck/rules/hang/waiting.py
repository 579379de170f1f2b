"""What a thread waits for inside its process, read off the frames of the standard library it sits in."""

from __future__ import annotations

from unstuck.model import Frame, Thread

LOCK, EVENT, GET, PUT, JOIN, FUTURE, BARRIER, COROUTINE = (
    "lock",
    "event",
    "queue get",
    "queue put",
    "join",
    "future",
    "barrier",
    "coroutine",
)
_DATA_QUEUES = ("multiprocessing/queues.py", "multiprocessing/connection.py")


def awaited(thread: Thread) -> str:
    """One of the words above for a thread in a lock-like wait; the outermost standard frame decides."""
    word = LOCK
    for frame in thread.frames:
        if frame.user:
            break
        word = _word(frame) or word
    if word == LOCK and thread.frames and ".join()" in thread.frames[0].code.replace(" ", ""):
        return JOIN
    if word == LOCK and thread.frames and ".wait()" in thread.frames[0].code and not thread.frames[0].takes:
        return EVENT
    return word


def _word(frame: Frame) -> str:
    file, function = frame.file, frame.function.rpartition(".")[2]
    if file.endswith(("/queue.py", "multiprocessing/queues.py")):
        return PUT if function == "put" else GET if function in ("get", "join") else ""
    if "concurrent/futures/" in file:
        return FUTURE if function in ("result", "exception", "wait", "result_iterator", "_result_or_cancel") else ""
    if file.endswith("multiprocessing/pool.py"):
        return FUTURE if function in ("wait", "get", "next") else JOIN if function == "join" else ""
    if file.endswith(("/threading.py", "multiprocessing/synchronize.py")):
        return _threading_word(function, frame)
    if file.endswith(("multiprocessing/popen_fork.py", "multiprocessing/process.py")):
        return JOIN if function in ("wait", "join", "poll") else ""
    return ""


def _threading_word(function: str, frame: Frame) -> str:
    if function in ("join", "_wait_for_tstate_lock", "_shutdown", "_join_os_thread"):
        return JOIN
    if "barrier" in frame.function.lower() or function in ("_enter", "_wait"):
        return BARRIER
    if function in ("wait", "wait_for"):
        return EVENT
    return ""


def idle_event_loop(thread: Thread) -> bool:
    """An asyncio loop with nothing to run: no timer set, and no descriptor to hear from but its own wake-up pipe."""
    wait = thread.wait
    if wait is None or wait.timed or wait.kind not in ("poll", "socket", "pipe-read") or wait.others or wait.fd is None:
        return False  # several descriptors: it serves somebody
    return in_event_loop(thread)


def in_event_loop(thread: Thread) -> bool:
    """asyncio waits, for whatever may come: a server that nobody asks is not stuck."""
    return any(f.file.endswith("asyncio/base_events.py") and f.function.endswith("_run_once") for f in thread.frames)


def waits_inside(thread: Thread) -> bool:
    """A wait that another thread of the same process must end, and that is not for a lock the line itself takes."""
    return thread.wait is not None and thread.wait.kind == "lock" and awaited(thread) != LOCK


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
    """Frame of `thread` that lies inside a `with` of that lock."""
    for frame in thread.frames[skip:]:
        if any(same_lock(held, name) for held in frame.holds):
            return frame
    return None


def feeds_queue(thread: Thread) -> bool:
    """The feeder thread of a multiprocessing queue."""
    return any(f.file.endswith("multiprocessing/queues.py") and f.function.endswith("_feed") for f in thread.frames)


def reads_queue(thread: Thread) -> bool:
    return any(frame.file.endswith(_DATA_QUEUES) for frame in thread.frames if not frame.user)
