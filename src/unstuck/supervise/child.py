"""Starts the training as our child, with its terminal, standard input, arguments and folder untouched."""

from __future__ import annotations

import os
import signal
import sys

from unstuck.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SITE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "recorder", "site")
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4


def environment(
    flight_dir: str | None, *, trace_nan: bool = False, heal: dict[str, object] | None = None
) -> dict[str, str]:
    """The child's environment: ours, and the recorder's folder first on PYTHONPATH."""
    env = dict(os.environ)
    if flight_dir is None:
        return env
    env["UNSTUCK_FLIGHT_DIR"] = flight_dir
    if trace_nan:
        env["UNSTUCK_TRACE_NAN"] = "1"
    if heal is not None:
        import json

        env["UNSTUCK_HEAL"] = json.dumps(heal)
    env["PYTHONPATH"] = SITE + (os.pathsep + env["PYTHONPATH"] if env.get("PYTHONPATH") else "")
    return env


class Child:
    """The started process: `returncode` is None while it runs, negative for the signal it died of."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


def start(command: Sequence[str], env: dict[str, str], *, old_mask: set[signal.Signals], detach: bool) -> Child:
    """Start it in our own process group, so that Ctrl-C, Ctrl-Z and the shell treat both as one job."""
    prctl = None if detach else _prctl()
    parent = os.getpid()
    read_end, write_end = os.pipe()  # closes by itself when exec succeeds; carries the errno if it does not
    _flush()
    # Where SIGCHLD was ignored when we were started, the kernel would throw the exit status away.
    reaping = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        try:
            if reaping == signal.SIG_IGN:
                signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores these; a program expects the default
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)
            if prctl is not None:
                prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
                if os.getppid() != parent:
                    os._exit(128 + signal.SIGKILL)
            os.execvpe(command[0], list(command), env)
        except OSError as error:
            os.write(write_end, str(error.errno).encode())
        finally:
            os._exit(127)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as answer:
        failed = answer.read()
    child = Child(pid)
    if failed:
        os.waitpid(pid, 0)
        raise UsageError(
            f"cannot start {command[0]}: {os.strerror(int(failed))}",
            cause="it is not on PATH, cannot be executed, or the interpreter was removed",
            next_command="unstuck env",
        )
    return child


def _prctl() -> Callable[..., int]:
    import ctypes

    prctl: Callable[..., int] = ctypes.CDLL(None).prctl
    return prctl


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # AttributeError: it was closed before we started
            pass


def die_like(number: int) -> int:
    """End by the same signal as the child, leaving no second core file."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    _prctl()(PR_SET_DUMPABLE, 0, 0, 0, 0)  # the limit alone does not count where cores go to a program
    _flush()
    try:
        signal.signal(number, signal.SIG_DFL)
    except (OSError, ValueError):
        pass
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    return 128 + number
