"""Stacks on demand and in a crash, by faulthandler into files opened beforehand; a word on each signal handled.

SIGRTMIN+5 asks for the stacks, which works while the interpreter is stuck, with the lock held or the GIL gone. It must
never come to a process that is at work: to read the frames of a running interpreter from a signal handler can crash it
(once in a thousand times on Python 3.11), which is also why Ctrl-C and SIGTERM leave no stacks behind.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the C part of signal, without the enums that take most of its time
import faulthandler
import os

from . import guard, imports
from . import layout as at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STACKS_SIGNAL = _signal.SIGRTMIN + 5
PR_SET_PTRACER = 0x59616D61
# Of .stacks, .signals and .heard: the descriptor, and which file it must be if it is still ours.
_files: list[tuple[int, tuple[int, int] | None]] = []
_armed = [False]  # faulthandler was told to write crashes into a file of ours


def arm(stem: str) -> None:
    """Open the files and register the handlers. A forked child has the handlers already: its files take their place."""
    if _redirected(stem + at.STACKS, stem + at.SIGNALS, stem + at.HEARD):
        _allow_tracing()
        return
    disarm()
    stacks = _keep(_open_high(stem + at.STACKS))
    if _signal.getsignal(STACKS_SIGNAL) == _signal.SIG_DFL:
        faulthandler.register(STACKS_SIGNAL, file=stacks, all_threads=True, chain=False)
    _keep(_open_high(stem + at.SIGNALS))
    arm_crash_handler()
    heard = _keep(_open_high(stem + at.HEARD))
    if _signal.set_wakeup_fd(-1) == -1:  # else it is in use already
        _signal.set_wakeup_fd(heard, warn_on_full_buffer=False)
    _allow_tracing()


def install() -> None:
    """Each signal the script handles leaves a byte in our pipe, by which the supervisor knows that it need not pass
    it on. A script that wants these bytes for itself gets them, and finds nothing of ours there."""
    imports.when_imported("signal", _share_wakeups)


def _share_wakeups(signal: Any) -> None:
    from functools import wraps

    original = signal.set_wakeup_fd

    @wraps(original)
    def set_wakeup_fd(fd: Any, /, **options: Any) -> Any:
        before = original(fd, **options)
        try:
            ours = _heard()
            if ours is not None and before == ours:
                before = -1
            if ours is not None and fd == -1:
                original(ours, warn_on_full_buffer=False)
        except Exception as fault:
            guard.off("signals heard", fault)
        return before

    signal.set_wakeup_fd = set_wakeup_fd

    def remove() -> None:
        if signal.set_wakeup_fd is set_wakeup_fd:
            signal.set_wakeup_fd = original

    guard.on("signals heard", remove)


def _heard() -> int | None:
    """Our pipe, while the number is still ours."""
    if len(_files) < 3 or _identity(_files[2][0]) != _files[2][1]:
        return None
    return _files[2][0]


def lower_crash_handler() -> bool:
    """Take ours out, so that handlers set now come beneath it: told again, faulthandler would only change its file.
    False: it is not there, or the user's own."""
    ours, _armed[0] = _armed[0], False
    if ours:
        faulthandler.disable()
    return ours


def arm_crash_handler() -> None:
    """faulthandler over whatever handlers there are; they still run after it."""
    if len(_files) >= 2 and not faulthandler.is_enabled():
        faulthandler.enable(file=_files[1][0], all_threads=True)
        _armed[0] = True


def silence() -> None:
    """In a forked child without files of its own: its stacks must not get among those of its parent."""
    _redirected(os.devnull, os.devnull, os.devnull)


def disarm() -> None:
    if _armed[0]:  # before its file is closed: the number may soon be a file of the user's
        faulthandler.disable()
        _armed[0] = False
    faulthandler.unregister(STACKS_SIGNAL)
    _stop_hearing()
    for handle, identity in _files:
        if _identity(handle) == identity:
            os.close(handle)
    _files.clear()


def _stop_hearing() -> None:
    heard = _heard()
    if heard is None:
        return
    before = _signal.set_wakeup_fd(-1)
    if before not in (heard, -1):
        _signal.set_wakeup_fd(before)  # the script's own


def _redirected(*paths: str) -> bool:
    """Put other files under the numbers that faulthandler knows; False where these are not (or no longer) ours."""
    if len(_files) != len(paths) or any(_identity(handle) != identity for handle, identity in _files):
        return False
    old = [handle for handle, _ in _files]
    _files.clear()
    for handle, path in zip(old, paths, strict=True):
        new = _open(path)
        os.dup2(new, handle, inheritable=False)
        os.close(new)
        _keep(handle)
    return True


def _keep(handle: int) -> int:
    _files.append((handle, _identity(handle)))
    return handle


def _identity(handle: int) -> tuple[int, int] | None:
    """Which file a number stands for: the user may have closed ours and got the number for one of theirs."""
    try:
        found = os.fstat(handle)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _open_high(path: str) -> int:
    """Open with a high number, so that the user's own descriptors keep the numbers they would have had."""
    import fcntl

    handle = _open(path)
    try:
        high = fcntl.fcntl(handle, fcntl.F_DUPFD_CLOEXEC, at.HIGH)
    except OSError:  # a low limit: keep the one we have
        return handle
    os.close(handle)
    return high


def _open(path: str) -> int:
    if not path.endswith(at.HEARD):
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.mkfifo(path, 0o600)
    except FileExistsError:  # after an exec in the same process
        pass
    return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)  # both ends: never broken, and bounded when unread


def _allow_tracing() -> None:
    """Under Yama, let the supervisor (and a later `attach`) look at this process."""
    if not os.path.exists("/proc/sys/kernel/yama/ptrace_scope"):
        return
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(-1), 0, 0, 0)
