"""The answer in one word and one sentence: stuck, running, stopped, unclear; and why, where it is not clear."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from unstuck.attach.access import way_in
from unstuck.attach.activity import FORWARD, OWN_CODE, activity
from unstuck.attach.blocked_for import Holdup
from unstuck.attach.inferred import loader_work
from unstuck.attach.inspection import Answer
from unstuck.model import Process
from unstuck.observer import proc
from unstuck.observer.descriptors import is_terminal
from unstuck.rules.hang.waiting import draws_from_sampler
from unstuck.rules.words import lines, place, seconds, who

Kind = Literal["stuck", "running", "unclear", "stopped", "ended", "blind"]
MIN_SHARE = 0.01  # of the time: what took less is not named


@dataclass(frozen=True)
class State:
    kind: Kind
    sentence: str
    reasons: tuple[str, ...] = ()
    """What was seen, and, where it is not clear, why not and what would make it so."""


def state_of(answer: Answer) -> State:
    if answer.ended:
        return State("ended", "The run ended while it was looked at.")
    if answer.loud:
        return State("stuck", answer.diagnosis.findings[0].title)
    stopped = _stopped(answer)
    if stopped is not None:
        return stopped
    if not _stacks_seen(answer):
        words = [f"{who(p)}: {activity(p.main_thread)}, as far as the kernel tells" for p in _mains(answer)]
        why = way_in(answer.case.looks[-1]).why
        return State("blind", "Its Python stacks cannot be seen from here.", (why, *words))
    # Who waits for another of the run is as clear as that one is.
    leading = [h for h in answer.holdups if not (h.others_work or "another rank" in h.stall.excuse)]
    leading = leading or list(answer.holdups)
    if all(_is_unclear(answer, holdup) for holdup in leading):
        return _unclear(answer, leading[0])
    return State("running", f"It is running: {doing(answer)}.", tuple(dict.fromkeys(_signs_of_life(answer))))


def doing(answer: Answer) -> str:
    """What the training does, in a few words: where most of its time went, else where the last look found it."""
    for holdup in answer.holdups:
        shares = answer.shares.get(holdup.stall.pid)
        if shares:
            return shares[0][0]
    mains = _mains(answer)
    return activity(mains[0].main_thread) if mains else "nothing that can be seen"


# --- running -------------------------------------------------------------------------------------------------


def _signs_of_life(answer: Answer) -> list[str]:
    reasons = []
    first = answer.holdups[0].stall.pid
    shares = answer.shares.get(first, [])
    if len(shares) > 1:
        parts = ", ".join(f"{word} {share:.0%}" for word, share in shares[:4] if share >= MIN_SHARE)
        reasons.append(f"its time over {seconds(answer.sampled)}: {parts}")
    if answer.moved.get(first):
        reasons.append(f"it moves: {answer.moved[first]} between two looks")
    names = {process.pid: who(process) for process in _mains(answer)}
    for holdup in answer.holdups:
        name = names.get(holdup.stall.pid, f"pid {holdup.stall.pid}")
        if holdup.stall.excuse:
            reasons.append(f"{name}: {holdup.stall.excuse}")
        elif holdup.process.pid != holdup.stall.pid:
            reasons.append(f"{name} waits for {who(holdup.process)}, which is at work")
        elif holdup.others_work:
            reasons.append(f"{name} waits {_for_what(holdup)}while others of this run are at work")
    return reasons


def _for_what(holdup: Holdup) -> str:
    """The lock on a file, and who has it; empty for other waits."""
    wait = holdup.thread.wait if holdup.thread else None
    if wait is None or wait.kind != "file-lock":
        return ""
    holders = ", ".join(f"pid {pid}" for pid in wait.others) or "somebody"
    return f"for the lock on {wait.target} that {holders} holds, "


# --- unclear -------------------------------------------------------------------------------------------------


def _is_unclear(answer: Answer, holdup: Holdup) -> bool:
    """Nothing was seen to move, and nothing says that this is as it should be."""
    if holdup.stall.excuse or holdup.others_work:
        return False
    words = _activities(answer, holdup)
    if _only_computes(words):
        return True
    if answer.moved.get(holdup.stall.pid) or len(words) > 1:
        return False
    return holdup.undecided or _is_blocked(holdup) or _is_loading(holdup)


def _activities(answer: Answer, holdup: Holdup) -> list[str]:
    """All that it was seen to do."""
    shares = [word for word, share in answer.shares.get(holdup.stall.pid, []) if share >= MIN_SHARE]
    main = next((process for process in _mains(answer) if process.pid == holdup.stall.pid), None)
    return shares or [activity(main.main_thread if main else None)]


def _only_computes(words: list[str]) -> bool:
    """In ways that are no sign of a training that goes on."""
    return all(word.startswith(OWN_CODE) or word in (FORWARD, "computing") for word in words)


def _is_loading(holdup: Holdup) -> bool:
    thread = holdup.thread
    return thread is not None and (loader_work(thread).fetching or draws_from_sampler(thread))


def _is_blocked(holdup: Holdup) -> bool:
    kind = holdup.thread.wait.kind if holdup.thread and holdup.thread.wait else "unknown"
    return kind == "sleep" or (kind not in ("running", "unknown") and holdup.stall.standing >= 1.0)


def _unclear(answer: Answer, holdup: Holdup) -> State:
    words = _activities(answer, holdup)
    if _only_computes(words):
        return State("unclear", f"It computes: {words[0]}.", tuple(_why_computing_is_unclear(answer, holdup)))
    thread, pid = holdup.thread, answer.case.root
    user = thread.user_frame if thread else None
    reasons = []
    if user is not None:
        stood = max(holdup.stall.standing, holdup.watched)
        reasons.append(f"{who(holdup.process)} has been at {place(user)} for at least {seconds(stood)}")
    polled = next((frame.polls for frame in thread.frames if frame.polls), "") if thread else ""
    if polled:
        reasons.append(f"it keeps testing whether the file `{polled}` is gone; which one that is cannot be read here")
    elif _is_loading(holdup):
        reasons.append("nothing here tells how long a sample takes in this run, so this one may or may not be stuck")
        reasons.append(f"after five minutes of watching that would be clear: `unstuck attach {pid} --seconds 310`")
    elif thread is not None and thread.wait is not None and thread.wait.timed:
        reasons.append("it waits with a timeout, wakes, and waits again: only its own code knows what for")
    elif holdup.stall.standing < answer.case.times.suspect:
        reasons.append(f"that is too short to tell a wait from a hang: `unstuck attach {pid} --seconds 30`")
    return State("unclear", f"It did not move while it was looked at: {words[0]}.", tuple(reasons))


def _why_computing_is_unclear(answer: Answer, holdup: Holdup) -> list[str]:
    frames = holdup.thread.frames if holdup.thread else ()
    user = next((frame for frame in frames if frame.user and frame.loop), None)
    loop = f"the loop at {lines(user.loop)} of {place(user)}" if user else "this code"
    return [
        f"over {seconds(answer.seconds)} it passed no batch, no backward pass and no optimizer step",
        f"whether {loop} ever ends cannot be seen from outside: long honest work looks the same",
        f"under `unstuck run` its own pace would tell; `unstuck attach {answer.case.root} --watch` reports when it "
        "moves on",
    ]


# --- stopped, blind ------------------------------------------------------------------------------------------


def _stacks_seen(answer: Answer) -> bool:
    """Some look, or the sampling, showed the stack of a process that trains; one look may fail by bad luck."""
    pids = {holdup.stall.pid for holdup in answer.holdups} | {holdup.process.pid for holdup in answer.holdups}
    processes = [process for look in answer.case.looks for process in look.processes if process.pid in pids]
    return any(answer.shares.values()) or any(process.stacks_by or process.recorded for process in processes)


def _stopped(answer: Answer) -> State | None:
    for process in _mains(answer):
        thread = process.main_thread
        if thread is None or thread.state not in ("T", "t"):
            continue
        tracer = int((proc.status(process.pid, "TracerPid") or ["0"])[0])
        if thread.state == "t" or tracer:
            name = " ".join(proc.command(tracer)[:2]) if tracer else "a debugger"
            return State("stopped", f"It is held by a debugger: {name} (pid {tracer}).", ("it goes on when that does",))
        terminal = any(is_terminal(proc.link(f"/proc/{process.pid}/fd/{fd}")) for fd in (0, 1, 2))
        reason = f"{who(process)} does not run until it is continued: `kill -CONT {process.pid}`"
        return State("stopped", f"It is stopped by SIGSTOP{' or Ctrl-Z' if terminal else ''}.", (reason,))
    return None


def _mains(answer: Answer) -> list[Process]:
    pids = {holdup.stall.pid for holdup in answer.holdups}
    return [process for process in answer.case.looks[-1].processes if process.pid in pids]
