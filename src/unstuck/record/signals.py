"""Stacks on demand and at the last moment: faulthandler into files opened beforehand, for reading when hung.

SIGRTMIN+5 asks for the stacks; SIGINT and SIGTERM leave them behind on their way to whoever handles them;
a crash does too. All in C: it works while the interpreter is stuck, with the lock held or the GIL gone.
"""

import faulthandler
import os
import signal

from . import layout as at

STACKS_SIGNAL = signal.SIGRTMIN + 5
PR_SET_PTRACER = 0x59616D61
_files = []


def arm(stem, worker=False):
    """Open the files and register the handlers; in a worker once more, since torch takes them over there."""
    disarm()
    stacks = _open_high(stem + at.STACKS)
    _files.append(stacks)
    if signal.getsignal(STACKS_SIGNAL) == signal.SIG_DFL:
        faulthandler.register(STACKS_SIGNAL, file=stacks, all_threads=True, chain=False)
    signals = _open_high(stem + at.SIGNALS)
    _files.append(signals)
    for number in (signal.SIGINT,) if worker else (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            faulthandler.register(number, file=signals, all_threads=True, chain=True)
    if worker or not faulthandler.is_enabled():
        faulthandler.enable(file=signals, all_threads=True)
    _allow_tracing()


def arm_crash_handler():
    """faulthandler again, over the C handlers torch puts into its workers (they still run after ours)."""
    if _files:
        faulthandler.enable(file=_files[-1], all_threads=True)


def disarm():
    for number in (STACKS_SIGNAL, signal.SIGINT, signal.SIGTERM):
        faulthandler.unregister(number)
    for handle in _files:
        try:
            os.close(handle)
        except OSError:
            pass
    _files.clear()


def _open_high(path):
    """Open with a high number, so that the user's own descriptors keep the numbers they would have had."""
    import fcntl

    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        high = fcntl.fcntl(handle, fcntl.F_DUPFD_CLOEXEC, 400)
    except OSError:  # a low limit: keep the one we have
        return handle
    os.close(handle)
    return high


def _allow_tracing():
    """Under Yama, let the supervisor (and a later `attach`) look at this process."""
    if not os.path.exists("/proc/sys/kernel/yama/ptrace_scope"):
        return
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(-1), 0, 0, 0)
