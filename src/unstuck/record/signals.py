"""Stacks on demand and at the last moment: faulthandler into files opened beforehand, for reading when hung.

SIGRTMIN+5 asks for the stacks; SIGINT and SIGTERM leave them behind on their way to whoever handles them;
a crash does too. All in C: it works while the interpreter is stuck, with the lock held or the GIL gone.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the C part of signal, without the enums that take most of its time
import faulthandler
import os

from . import imports, probes
from . import layout as at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STACKS_SIGNAL = _signal.SIGRTMIN + 5
PR_SET_PTRACER = 0x59616D61
ENDS = (_signal.SIGINT, _signal.SIGTERM)
OTHERS = (_signal.SIGHUP, _signal.SIGQUIT, _signal.SIGUSR1, _signal.SIGUSR2, _signal.SIGCONT, _signal.SIGTSTP)
_chained: set[int] = set()  # signals that leave stacks behind on their way
# Of .stacks and .signals: the descriptor, and which file it must be if it is still ours.
_files: list[tuple[int, tuple[int, int] | None]] = []
_crash_handler = False  # faulthandler was told to write crashes into a file of ours


def arm(stem: str) -> None:
    """Open the files and register the handlers. A forked child has the handlers already: its files take their place."""
    if _redirected(stem + at.STACKS, stem + at.SIGNALS):
        _allow_tracing()
        return
    disarm()
    stacks = _keep(_open_high(stem + at.STACKS))
    if _signal.getsignal(STACKS_SIGNAL) == _signal.SIG_DFL:
        faulthandler.register(STACKS_SIGNAL, file=stacks, all_threads=True, chain=False)
    _keep(_open_high(stem + at.SIGNALS))
    for number in (*ENDS, *OTHERS):
        _chain(number)
    arm_crash_handler()
    _allow_tracing()


def _chain(number: int) -> None:
    """Be told of a signal before its handler. Of others than SIGINT and SIGTERM only if the script handles them: one
    thread's stack is then our receipt, by which the supervisor knows that it need not pass the signal on."""
    handler = _signal.getsignal(number)
    ours = len(_files) == 2 and _identity(_files[1][0]) == _files[1][1]
    if ours and handler != _signal.SIG_IGN and (number in ENDS or callable(handler)):
        faulthandler.register(number, file=_files[1][0], all_threads=number in ENDS, chain=True)
        _chained.add(number)


def install() -> None:
    """Stay in front when the script sets a handler of its own, which takes the place of faulthandler's."""
    imports.when_imported("signal", _hear_handlers)


def _hear_handlers(signal: Any) -> None:
    from functools import wraps

    original = signal.signal

    @wraps(original)
    def set_handler(signalnum: Any, handler: Any) -> Any:
        if not isinstance(signalnum, int) or signalnum not in (*ENDS, *OTHERS):
            return original(signalnum, handler)
        try:
            if signalnum in _chained:
                _chained.discard(signalnum)
                faulthandler.unregister(signalnum)
        except Exception as fault:
            probes.off("signal handlers", fault)
        try:
            return original(signalnum, handler)
        finally:
            try:
                _chain(signalnum)
            except Exception as fault:
                probes.off("signal handlers", fault)

    signal.signal = set_handler

    def remove() -> None:
        if signal.signal is set_handler:
            signal.signal = original

    probes.on("signal handlers", remove)


def lower_crash_handler() -> bool:
    """Take ours out, so that handlers set now come beneath it: told again, faulthandler would only change its file.
    False: it is not there, or the user's own."""
    global _crash_handler
    ours, _crash_handler = _crash_handler, False
    if ours:
        faulthandler.disable()
    return ours


def arm_crash_handler() -> None:
    """faulthandler over whatever handlers there are; they still run after it."""
    global _crash_handler
    if len(_files) == 2 and not faulthandler.is_enabled():
        faulthandler.enable(file=_files[1][0], all_threads=True)
        _crash_handler = True


def silence() -> None:
    """In a forked child without files of its own: its stacks must not get among those of its parent."""
    _redirected(os.devnull, os.devnull)


def disarm() -> None:
    global _crash_handler
    if _crash_handler:  # before its file is closed: the number may soon be a file of the user's
        faulthandler.disable()
        _crash_handler = False
    for number in (STACKS_SIGNAL, *_chained):
        faulthandler.unregister(number)
    _chained.clear()
    for handle, identity in _files:
        if _identity(handle) == identity:
            os.close(handle)
    _files.clear()


def _redirected(*paths: str) -> bool:
    """Put other files under the numbers that faulthandler knows; False where these are not (or no longer) ours."""
    if len(_files) != len(paths) or any(_identity(handle) != identity for handle, identity in _files):
        return False
    old = [handle for handle, _ in _files]
    _files.clear()
    for handle, path in zip(old, paths, strict=True):
        new = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
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

    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        high = fcntl.fcntl(handle, fcntl.F_DUPFD_CLOEXEC, 400)
    except OSError:  # a low limit: keep the one we have
        return handle
    os.close(handle)
    return high


def _allow_tracing() -> None:
    """Under Yama, let the supervisor (and a later `attach`) look at this process."""
    if not os.path.exists("/proc/sys/kernel/yama/ptrace_scope"):
        return
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(-1), 0, 0, 0)
