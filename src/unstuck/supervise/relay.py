"""Signals: everything that reaches us reaches the child, once; stop and continue work as for any job."""

from __future__ import annotations

import os
import signal
import time

from unstuck.observer.gauge import stat_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from unstuck.model import Sender

_NOT_OURS = frozenset(
    (
        *("SIGKILL", "SIGSTOP", "SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTRAP", "SIGSYS"),
        *("SIGTTIN", "SIGTTOU", "SIGPIPE", "SIGWINCH", "SIGURG", "SIGPROF", "SIGVTALRM", "SIGALRM"),
        *("SIGXCPU", "SIGXFSZ", "SIGIO", "SIGPWR", "SIGSTKFLT"),
    )
)
GROUP_RECEIPT_SECONDS = 0.3  # the child has so long to show that it got a signal of the group itself
OWN_RECEIPT_SECONDS = 1.0  # and so long that it got what we sent


class Relay:
    """Takes signals one at a time from the kernel, so that each comes with who sent it."""

    def __init__(self) -> None:
        numbers = {s for s in signal.valid_signals() if not (isinstance(s, signal.Signals) and s.name in _NOT_OURS)}
        self.taken = {s for s in numbers if signal.getsignal(s) != signal.SIG_IGN} | {signal.SIGCHLD}
        self.old_mask: set[signal.Signals] = set()

    def begin(self) -> None:
        self.old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, self.taken)  # type: ignore[assignment]

    def end(self) -> bool:
        """True if somebody wanted an end that came too late for the run."""
        late = False
        while (info := self.wait(0)) is not None:  # for a run that is over: a second Ctrl-C must not change how we end
            late |= info.si_signo in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        signal.pthread_sigmask(signal.SIG_SETMASK, self.old_mask)
        return late

    def wait(self, seconds: float) -> signal.struct_siginfo | None:
        return signal.sigtimedwait(self.taken, max(0.0, seconds))

    def forward(self, info: signal.struct_siginfo, pid: int, has_receipt: Callable[[], bool]) -> bool:
        """Pass a signal on, unless the terminal or its sender gave it to the child too. True: a receipt came."""
        came = self._pass_on(info, pid, has_receipt)
        if info.si_signo == signal.SIGTSTP:
            os.kill(os.getpid(), signal.SIGSTOP)
        return came

    def _pass_on(self, info: signal.struct_siginfo, pid: int, has_receipt: Callable[[], bool]) -> bool:
        if info.si_code > 0:  # from the kernel: a key at the terminal, sent to the whole group
            return False
        if _within(GROUP_RECEIPT_SECONDS, has_receipt):
            return True
        if pending(pid, info.si_signo):
            return False
        try:
            os.kill(pid, info.si_signo)
        except (ProcessLookupError, PermissionError):  # PermissionError: it changed its user
            pass
        return _within(OWN_RECEIPT_SECONDS, has_receipt)  # so that the next signal is not taken for this one


def _within(seconds: float, happened: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if happened():
            return True
        time.sleep(0.02)
    return False


def pending(pid: int, number: int) -> bool:
    """The kernel holds this signal for the process: it got it, and has not come to handle it."""
    try:
        with open(f"/proc/{pid}/status") as status:
            for line in status:
                if line.startswith(("SigPnd:", "ShdPnd:")) and int(line.split()[1], 16) >> (number - 1) & 1:
                    return True
    except OSError:  # no /proc: better to send a signal twice than never
        return False
    return False


def sender(info: signal.struct_siginfo) -> Sender:
    """Who sent a signal, read at once: a `kill` lives no longer than a moment."""
    from unstuck.model import Sender
    from unstuck.observer.proc import ancestors, command

    pid = info.si_pid if info.si_code <= 0 else 0  # else it came from the kernel: a key, or a closed terminal
    ours, theirs = stat_fields(os.getpid()), stat_fields(pid) if pid > 0 else []
    at_terminal = ours[4] not in (b"0", b"-1")
    gone = pid > 0 and not theirs and info.si_uid == os.getuid()  # a `kill` of this very user, most likely typed
    return Sender(
        signal=info.si_signo,
        pid=pid,
        command=" ".join(command(pid)) if theirs else "",
        ancestor=pid in ancestors(os.getpid()),
        terminal=at_terminal and (gone or (bool(theirs) and theirs[4] == ours[4])),
        at=time.monotonic(),
    )
