"""How a run ended, besides its exit status: who sent the signals that reached us, and whose job it was."""

from __future__ import annotations

import os

from unstuck.observer.gauge import stat_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from unstuck.model import Sender

JOBS = {  # scheduler: (its job id, when the job must end, in seconds since 1970)
    "Slurm": ("SLURM_JOB_ID", "SLURM_JOB_END_TIME"),
    "LSF": ("LSB_JOBID", ""),
    "PBS": ("PBS_JOBID", ""),
    "Grid Engine": ("JOB_ID", ""),
    "Kubernetes": ("KUBERNETES_SERVICE_HOST", ""),
}


def sender(number: int, pid: int, uid: int, at: float) -> Sender:
    """Who sent a signal, read at once: a `kill` lives no longer than a moment."""
    from unstuck.model import Sender

    ours, theirs = stat_fields(os.getpid()), stat_fields(pid) if pid > 0 else []
    at_terminal = ours[4] not in (b"0", b"-1")
    gone = pid > 0 and not theirs and uid == os.getuid()  # a `kill` or `pkill` of this very user, most likely typed
    return Sender(
        signal=number,
        pid=pid,
        uid=uid,
        command=_command(pid) if theirs else "",
        ancestor=pid in _ancestors(),
        terminal=at_terminal and (gone or (bool(theirs) and theirs[4] == ours[4])),
        at=at,
    )


def _ancestors() -> list[int]:
    found: list[int] = []
    pid = os.getppid()
    while pid > 0 and pid not in found:
        found.append(pid)
        fields = stat_fields(pid)
        pid = int(fields[1]) if fields else 0
    return found


def _command(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read(4096).replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def scheduler(environment: Mapping[str, str]) -> dict[str, object]:
    """The job that the run is part of; empty if it is none of the schedulers'."""
    for name, (job, ends) in JOBS.items():
        if job in environment and (name != "Grid Engine" or "SGE_ROOT" in environment):
            told: dict[str, object] = {"name": name, "job": environment[job]}
            when = environment.get(ends, "") if ends else ""
            return {**told, "ends": int(when)} if when.isdigit() else told
    return {}
