"""ended-from-outside: a signal from outside ended the run.

What it sees
    SIGTERM, SIGHUP or SIGKILL ended the training or one of its workers, and nothing proves that memory ran out.

Why it matters
    Everything since the last checkpoint is lost. A scheduler's time limit, an eviction, a closed terminal or a person
    will do the same to the next run.

Evidence
    The signal, who sent it if the kernel reports that, whether the sender is a parent of the run, and the job's end
    time if there is a scheduler.

Fix
    It depends on the sender: a longer time limit and checkpoints for a scheduler, `nohup` or `tmux` for a closed
    terminal.

When it is wrong
    The sender of a SIGKILL cannot be seen. An OOM kill that no counter shows looks the same; it is named as a
    possibility. What a person typed at the same terminal is information only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from unstuck.model import Case, Exit, Finding, Sender
from unstuck.rules.death.post_mortem import Death, WorkerEnd, death, exception_text
from unstuck.rules.rule import Rule
from unstuck.rules.words import process_name, seconds, shorten
from unstuck.text import SIGHUP, SIGINT, SIGTERM, signal_name

OUTSIDE = ("SIGTERM", "SIGHUP", "SIGKILL")
SHELLS = ("sh", "bash", "zsh", "fish", "dash", "ksh", "tcsh", "csh")
NEAR_END_SECONDS = 120.0  # before a job's end time: the scheduler may well have sent the signal
SAVE = "save a checkpoint on SIGTERM so that the next run can resume from there"


def decide(case: Case) -> Iterable[Finding]:
    if case.outcome == "interrupted":
        yield from _passed_on(case)
        return
    end = death(case)
    if end is None or (end.died is not None and not end.fallen):
        return
    name = signal_name(end.exit.signal or 0)
    worker = next((worker for worker in end.fallen if worker.signal in OUTSIDE and worker.exited is None), None)
    if name in OUTSIDE:
        yield _by_signal(end, name, None)
    elif worker is not None:
        yield _by_signal(end, worker.signal, worker)


def _passed_on(case: Case) -> Iterable[Finding]:
    """The supervisor got the signal and passed it on."""
    sent = [sender for sender in case.senders if sender.signal in (SIGTERM, SIGHUP)]
    if not sent or any(sender.signal == SIGINT for sender in case.senders):
        return
    first, name, who = sent[0], signal_name(sent[0].signal), _who(sent[0])
    root = case.root or 0
    exit_ = next((each for each in case.exits if each.pid == case.root), Exit(root))
    handled = exit_.signal is None
    person = first.terminal and (not first.ancestor or _is_a_prompt(first.command))
    end = Death(case, root, exit_)
    yield RULE.finding(
        severity="info" if person or handled else "error",
        confidence=0.97,
        title=f"the run was ended from outside: {name} from {who}",
        evidence=(
            f"unstuck passed {name} on to the training; it came from {who}",
            _job(case, first.at),
            "the training handled it and exited by itself" if handled else "",
            end.progress(),
        ),
        where=end.where(None),
        fix=_fix(case, first),
        seen_by="kernel",
    )


def _is_a_prompt(command: str) -> bool:
    """A shell without a script: `kill` was typed into it."""
    words = [word for word in command.split() if not word.startswith("-")] or [command.removeprefix("-")]
    return len(words) == 1 and words[0].rpartition("/")[2].removeprefix("-") in SHELLS


def _who(sender: Sender) -> str:
    if not sender.pid:
        return "the kernel (its terminal was closed)" if sender.signal == SIGHUP else "an unknown process"
    name = f"`{shorten(sender.command)}` (pid {sender.pid})" if sender.command else f"process {sender.pid}, now gone"
    if sender.ancestor:
        return f"{name}, which started this run"
    return f"{name} at the same terminal" if sender.terminal else name


def _scheduler(case: Case) -> dict[str, Any] | None:
    job = case.machine.get("scheduler")
    return job if isinstance(job, dict) else None


def _seconds_left(case: Case, at: float) -> float | None:
    """Until the end time of the job."""
    ends = (_scheduler(case) or {}).get("ends")
    return ends - (at + case.clock_offset) if isinstance(ends, int) else None


def _job(case: Case, at: float) -> str:
    job, left = _scheduler(case), _seconds_left(case, at)
    if job is None:
        return ""
    name = "this is a pod" if job.get("name") == "Kubernetes" else f"this is {job.get('name')} job {job.get('job')}"
    if left is None:
        return name
    return f"{name}; the signal came {f'{seconds(left)} before' if left > 0 else 'at'} its end time"


def _fix(case: Case, sender: Sender) -> str:
    left = _seconds_left(case, sender.at)
    if left is not None and left < NEAR_END_SECONDS:
        return "Request a longer time limit, and save checkpoints so that the next job can resume from there."
    if sender.signal == SIGHUP:
        return "Start it so that it outlives the terminal: `nohup`, `tmux`, `screen`, or a scheduler's job."
    if _scheduler(case) is not None:
        return f"Look up why the scheduler ended the job (time limit, preemption, memory); {SAVE}."
    return f"Find out who runs that process; {SAVE}."


def _by_signal(end: Death, name: str, worker: WorkerEnd | None) -> Finding:
    """It did not come through unstuck: the sender is not known."""
    killed = name == "SIGKILL"
    if worker is not None:
        sample = worker.flight.sample if worker.flight is not None else None
        who = worker.name
        proof = f"{name} ended {who}{f' at sample {sample}' if sample is not None else ''}, by its exit code in main"
    else:
        rank = end.flight.rank if end.flight is not None else None
        who = f"the training (pid {end.pid})" if rank is None else f"rank {rank} (pid {end.pid})"
        if end.missed is not None:
            who = process_name(end.case, end.pid)
        proof = f"{name} ended it; it does not send that to itself, and it did not come through unstuck"
    return RULE.finding(
        severity="error",
        confidence=0.85 if killed or worker is not None else 0.9,
        title=f"{who} was ended from outside with {name}",
        evidence=(
            proof,
            _oom_counter(end.case) if killed else "",
            _job(end.case, end.case.now),
            f"main then died of `{exception_text(end.died.raised)}`" if end.died is not None else "",
            end.progress(),
        ),
        where=end.where(None, None, worker),
        fix=f"Find out who ended it: a person, a scheduler, or the kernel's OOM killer (`dmesg | tail`); {SAVE}.",
        seen_by="exit",
    )


def _oom_counter(case: Case) -> str:
    """Only what was read: a counter that stands still is no proof that memory was not the reason elsewhere."""
    counted = [group for group in case.groups if group.limit is not None or group.kills or group.path]
    return f"no OOM kill was counted in {counted[0].path}" if counted else "no counter of OOM kills could be read"


RULE = Rule("ended-from-outside", "death", decide)
