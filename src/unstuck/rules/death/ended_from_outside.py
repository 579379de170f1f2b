"""ended-from-outside: somebody else ended the run.

What it sees
    SIGTERM, SIGHUP or SIGKILL ended the training or one of its workers, and nothing proves that memory ran out.

Why it matters
    A scheduler's time limit, an eviction, a closed terminal, or a person: the run was asked to end, or made to.

Evidence
    The signal, who sent it where the kernel told us, whether that is a parent of the run, and the scheduler's end
    time where there is one.

Fix
    Depends on who: a longer time limit and checkpoints for a scheduler, `nohup` or `tmux` for a closed terminal.

When it is wrong
    The sender of a SIGKILL cannot be seen. A kill for lack of memory that leaves no trace in any counter looks the
    same; it is named as a possibility. What a person typed at the same terminal is information only.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable

from unstuck.model import Case, Exit, Finding, Fix, Sender, Severity, Where
from unstuck.rules.death.died import Death, WorkerEnd, death, signal_name
from unstuck.rules.death.errors import said
from unstuck.rules.rule import Rule
from unstuck.rules.words import seconds

OUTSIDE = (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
SHELLS = ("sh", "bash", "zsh", "fish", "dash", "ksh", "tcsh", "csh")
NEAR = 120.0
"""Seconds before a job's end time in which its scheduler may well have sent the signal."""


def decide(case: Case) -> Iterable[Finding]:
    if case.outcome == "interrupted":
        yield from _through_us(case)
        return
    end = death(case)
    if end is None or (end.died is not None and not end.fallen):
        return
    if end.exit.signal in OUTSIDE:
        yield _direct(end)
        return
    worker = next((w for w in end.fallen if w.signal in ("SIGKILL", "SIGTERM", "SIGHUP") and w.left is None), None)
    if worker is not None:
        yield _of_worker(end, worker)


def _through_us(case: Case) -> Iterable[Finding]:
    """A signal that came to the supervisor and was passed on."""
    sent = [s for s in case.senders if s.signal in (signal.SIGTERM, signal.SIGHUP)]
    if not sent or any(s.signal == signal.SIGINT for s in case.senders):
        return
    first = sent[0]
    root = next((e for e in case.exits if e.pid == case.root), Exit(case.root or 0))
    by_itself = root.signal is None
    name = signal_name(first.signal)
    person = first.terminal and (not first.ancestor or _is_a_prompt(first.command))
    severity: Severity = "info" if person or by_itself else "error"
    flight = next((f for f in case.flights if f.pid == case.root), None)
    end = Death(case, case.root or 0, root)
    yield RULE.finding(
        severity=severity,
        confidence=0.97,
        title=f"the run was ended from outside: {name} from {_who(first)}",
        evidence=(
            f"{name} came to unstuck, which passed it on to the training; it was sent by {_who(first)}",
            *_scheduled(case, first.at),
            *(["the training handled it and ended by itself"] if by_itself else []),
            end.progress(),
        ),
        where=Where(pid=case.root, step=flight.step if flight is not None and flight.step else None),
        fix=Fix(_fix(case, first)),
        seen_by="kernel",
    )


def _is_a_prompt(command: str) -> bool:
    """A shell without a script: `kill` was typed into it."""
    words = [word for word in command.split() if not word.startswith("-")] or [command.removeprefix("-")]
    return len(words) == 1 and words[0].rpartition("/")[2].removeprefix("-") in SHELLS


def _who(sender: Sender) -> str:
    if not sender.pid:
        return "the kernel (its terminal was closed)" if sender.signal == signal.SIGHUP else "an unknown process"
    command = sender.command if len(sender.command) <= 60 else sender.command[:57] + "…"
    named = f"`{command}` (pid {sender.pid})" if command else f"process {sender.pid}, which is gone"
    if sender.ancestor:
        return f"{named}, which started this run"
    return f"{named} at the same terminal" if sender.terminal else named


def _scheduled(case: Case, at: float) -> list[str]:
    job = case.machine.get("scheduler")
    if not isinstance(job, dict):
        return []
    named = f"this is {job.get('name')} job {job.get('job')}" if job.get("name") != "Kubernetes" else "this is a pod"
    if isinstance(job.get("ends"), int):
        left = job["ends"] - (at + case.clock_offset)
        when = f"{seconds(left)} before its end time" if left > 0 else "at its end time"
        return [f"{named}; the signal came {when}"]
    return [named]


def _due(case: Case, at: float) -> bool:
    job = case.machine.get("scheduler")
    ends = job.get("ends") if isinstance(job, dict) else None
    return isinstance(ends, int) and ends - (at + case.clock_offset) < NEAR


def _fix(case: Case, sender: Sender) -> str:
    if _due(case, sender.at):
        return "Ask for a longer time limit, and save checkpoints so that the next job can go on from there."
    if sender.signal == signal.SIGHUP:
        return "Start it so that it outlives the terminal: `nohup`, `tmux`, `screen`, or a job of the scheduler."
    if isinstance(case.machine.get("scheduler"), dict):
        return (
            "Ask the scheduler why it ended the job (time limit, preemption, memory); save a checkpoint on SIGTERM so "
            "that the next one goes on from there."
        )
    return "Ask whoever runs that process; save a checkpoint on SIGTERM so that the next run can go on from there."


def _direct(end: Death) -> Finding:
    name = signal_name(end.exit.signal or 0)
    kill = end.exit.signal == signal.SIGKILL
    return RULE.finding(
        severity="error",
        confidence=0.85 if kill else 0.9,
        title=f"the training (pid {end.pid}) was ended from outside with {name}",
        evidence=(
            f"the training process died of {name}, which it does not send itself, and which did not come through "
            "unstuck",
            *_memory(end),
            *_scheduled(end.case, end.case.now),
            end.progress(),
        ),
        where=end.where(None),
        fix=Fix(
            "Find out who ended it: a person, a scheduler, or the system for lack of memory (`dmesg | tail`)."
            if kill
            else "Find out who ended it; save a checkpoint on SIGTERM so that the next run can go on from there."
        ),
        seen_by="exit",
    )


def _of_worker(end: Death, worker: WorkerEnd) -> Finding:
    flight = worker.flight
    on = f" while on sample {flight.sample}" if flight is not None and flight.sample is not None else ""
    return RULE.finding(
        severity="error",
        confidence=0.85,
        title=f"{worker.who} was ended from outside with {worker.signal}",
        evidence=(
            f"{worker.who} died of {worker.signal}{on}, as its exit code in main says",
            *(_memory(end) if worker.signal == "SIGKILL" else []),
            *([f"main then died of `{said(end.died.raised)}`"] if end.died is not None else []),
            end.progress(),
        ),
        where=end.where(None, None, worker),
        fix=Fix(
            "Find out who ended it: a person, a scheduler's clean-up, or the system for lack of memory "
            "(`dmesg | tail`); then start again from the last checkpoint."
        ),
        seen_by="exit",
    )


def _memory(end: Death) -> list[str]:
    """Only what was read; a group whose counter stands is no proof that memory was not the reason elsewhere."""
    counted = [group for group in end.case.groups if group.limit is not None or group.kills or group.path]
    if counted:
        return [f"no kill for lack of memory was counted for {counted[0].path}"]
    return ["no counter of kills for lack of memory could be read"]


RULE = Rule("ended-from-outside", "death", decide)
