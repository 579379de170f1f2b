"""Starts the training as our child, with its terminal, standard input, arguments and folder untouched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from unstuck.errors import UsageError

SITE = Path(__file__).resolve().parent.parent / "record" / "site"
PR_SET_PDEATHSIG = 1


def environment(flight_dir: Path | None) -> dict[str, str]:
    """The child's environment: ours, and the recorder's folder first on PYTHONPATH."""
    env = dict(os.environ)
    if flight_dir is None:
        return env
    env["UNSTUCK_FLIGHT_DIR"] = str(flight_dir)
    env["PYTHONPATH"] = str(SITE) + (os.pathsep + env["PYTHONPATH"] if env.get("PYTHONPATH") else "")
    return env


def start(
    command: Sequence[str], env: dict[str, str], *, old_mask: set[signal.Signals], detach: bool
) -> subprocess.Popen[bytes]:
    """Start it in our own process group, so that Ctrl-C, Ctrl-Z and the shell treat both as one job."""
    die_with_us = None if detach else _prctl()
    parent = os.getpid()

    def prepare() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)
        if die_with_us is not None:
            die_with_us(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:
                os._exit(128 + signal.SIGKILL)

    try:
        return subprocess.Popen(command, env=env, preexec_fn=prepare, close_fds=False)
    except FileNotFoundError as error:
        raise UsageError(
            f"cannot start {command[0]}: no such command",
            cause="it is not on PATH, or the interpreter was removed",
            next_command="unstuck env",
        ) from error
    except PermissionError as error:
        raise UsageError(f"cannot start {command[0]}: {error.strerror}", next_command="unstuck env") from error


def _prctl():  # type: ignore[no-untyped-def]  # a ctypes function has no useful type
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    return ctypes.CDLL(None).prctl


def die_like(number: int) -> int:
    """End by the same signal as the child, leaving no second core file."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        signal.signal(number, signal.SIG_DFL)
    except (OSError, ValueError):
        pass
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    return 128 + number
