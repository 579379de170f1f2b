"""The answer in one word and one sentence: stuck, running, stopped, unclear; and why, where it cannot be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from unstuck.attach.access import way_in
from unstuck.attach.activity import FORWARD, OWN_CODE, activity
from unstuck.attach.inferred import seat_of
from unstuck.attach.inspection import Answer
from unstuck.attach.standing import Standing
from unstuck.model import Process
from unstuck.observer import proc
from unstuck.observer.descriptors import is_terminal
from unstuck.rules.hang.waiting import draws_from_sampler
from unstuck.rules.words import lines, place, seconds, who

Kind = Literal["stuck", "running", "unclear", "stopped", "ended", "blind"]


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
    if not _seen(answer):
        return _blind(answer)
    # Who waits for another of the run is as clear as that one is.
    leading = [s for s in answer.standings if not _waits_for_others(s)] or list(answer.standings)
    if all(_unclear(answer, standing) for standing in leading):
        return _unclear_state(answer, leading[0])
    return _running(answer)


def doing(answer: Answer) -> str:
    """What the training does, in a few words: where most of its time went, else where the last look found it."""
    for standing in answer.standings:
        shares = answer.shares.get(standing.stall.pid)
        if shares:
            return shares[0][0]
    main = _mains(answer)
    return activity(main[0], main[0].main_thread).word if main else "nothing that can be seen"


# --- the kinds -----------------------------------------------------------------------------------------------


def _running(answer: Answer) -> State:
    said = []
    standing = answer.standings[0]
    shares = answer.shares.get(standing.stall.pid, [])
    if len(shares) > 1:
        parts = ", ".join(f"{word} {share:.0%}" for word, share in shares[:4] if share >= 0.01)
        said.append(f"its time over {seconds(answer.sampled)}: {parts}")
    if answer.moved.get(standing.stall.pid):
        said.append(f"it moves: {answer.moved[standing.stall.pid]} between two looks")
    for each in answer.standings:
        if each.stall.excuse:
            said.append(f"{_who(answer, each)}: {each.stall.excuse}")
        elif each.process.pid != each.stall.pid:
            said.append(f"{_who(answer, each)} waits for {who(each.process)}, which is at work")
        elif each.others_work:
            said.append(f"{_who(answer, each)} waits {_for_what(each)}while others of this run are at work")
    return State("running", f"It is running: {doing(answer)}.", tuple(dict.fromkeys(said)))


def _for_what(standing: Standing) -> str:
    """The lock on a file, and who has it; empty for other waits."""
    wait = standing.thread.wait if standing.thread else None
    if wait is None or wait.kind != "file-lock":
        return ""
    holders = ", ".join(f"pid {pid}" for pid in wait.others) or "somebody"
    return f"for the lock on {wait.target} that {holders} holds, "


def _unclear(answer: Answer, standing: Standing) -> bool:
    """Nothing was seen to move, and nothing says that this is as it should be."""
    if standing.stall.excuse or standing.others_work:
        return False
    words = _words(answer, standing)
    if all(_computes(word) for word in words):
        return True
    if answer.moved.get(standing.stall.pid) or len(words) > 1:
        return False
    loading = standing.thread is not None and (seat_of(standing.thread).fetching or draws_from_sampler(standing.thread))
    return standing.undecided or _blocked(standing) or loading


def _waits_for_others(standing: Standing) -> bool:
    return standing.others_work or "another rank" in standing.stall.excuse


def _words(answer: Answer, standing: Standing) -> list[str]:
    """All that it was seen to do."""
    shares = answer.shares.get(standing.stall.pid, [])
    main = next((p for p in _mains(answer) if p.pid == standing.stall.pid), None)
    seen = [word for word, share in shares if share >= 0.01]
    return seen or [activity(main, main.main_thread if main else None).word]


def _computes(word: str) -> bool:
    """It computes, in a way that is no sign of a training that goes on."""
    return word.startswith(OWN_CODE) or word in (FORWARD, "computing")


def _blocked(standing: Standing) -> bool:
    wait = standing.thread.wait if standing.thread else None
    if wait is None or wait.kind in ("running", "unknown"):
        return False
    return wait.kind == "sleep" or standing.stall.standing >= 1.0


def _unclear_state(answer: Answer, standing: Standing) -> State:
    thread = standing.thread
    user = next((f for f in thread.frames if f.user), None) if thread else None
    pid = answer.case.root
    words = _words(answer, standing)
    if all(_computes(word) for word in words):
        return State("unclear", f"It computes: {words[0]}.", tuple(_no_seam(answer, standing)))
    said = [f"{who(standing.process)} has been at {place(user)} for at least {seconds(_stood(standing))}"]
    wait = thread.wait if thread else None
    drawing = thread is not None and draws_from_sampler(thread)
    polled = next((f.polls for f in thread.frames if f.polls), "") if thread else ""
    if polled:
        said += [f"it tests again and again whether the file `{polled}` is gone; which one that is cannot be read here"]
    elif seat_of(thread).fetching or drawing:
        said += [
            "nothing here tells how long a sample takes in this run, so it cannot be said that this one is stuck",
            f"watched for five minutes it would be: `unstuck attach {pid} --seconds 310`",
        ]
    elif wait is not None and wait.timed:
        said += ["it waits with a limit of time, wakes, and waits again: only its own code knows what for"]
    elif standing.stall.standing < answer.case.times.suspect:
        said += [f"that is too short to tell a wait from a hang: `unstuck attach {pid} --seconds 30`"]
    return State("unclear", f"It did not move while it was looked at: {words[0]}.", tuple(said if user else said[1:]))


def _stood(standing: Standing) -> float:
    return max(standing.stall.standing, standing.watched)


def _no_seam(answer: Answer, standing: Standing) -> list[str]:
    thread = standing.thread
    user = next((f for f in thread.frames if f.user and f.loop), None) if thread else None
    loop = f"the loop at {lines(user.loop)} of {place(user)}" if user else "this code"
    return [
        f"over {seconds(answer.seconds)} it passed no batch, no backward pass and no optimizer step",
        f"whether {loop} ever ends cannot be seen from outside: long honest work looks the same",
        f"under `unstuck run` its own pace would tell; `unstuck attach {answer.case.root} --watch` speaks when it "
        "moves on",
    ]


def _seen(answer: Answer) -> bool:
    """Some look, or the sampling, showed the stack of a process that trains; one look may fail by bad luck."""
    pids = {standing.stall.pid for standing in answer.standings} | {s.process.pid for s in answer.standings}
    processes = [process for look in answer.case.looks for process in look.processes if process.pid in pids]
    return any(answer.shares.values()) or any(process.stacks_by or process.recorded for process in processes)


def _stopped(answer: Answer) -> State | None:
    for process in _mains(answer):
        thread = process.main_thread
        if thread is None or thread.state not in ("T", "t"):
            continue
        tracer = _tracer(process.pid)
        if thread.state == "t" or tracer:
            name = " ".join(proc.command(tracer)[:2]) if tracer else "a debugger"
            return State("stopped", f"It is held by a debugger: {name} (pid {tracer}).", ("it goes on when that does",))
        how = "by SIGSTOP or Ctrl-Z" if _has_terminal(process.pid) else "by SIGSTOP"
        said = (f"{who(process)} does not run until it is continued: `kill -CONT {process.pid}`",)
        return State("stopped", f"It is stopped {how}.", said)
    return None


def _blind(answer: Answer) -> State:
    words = [f"{who(p)}: {activity(p, p.main_thread).word}, as far as the kernel tells" for p in _mains(answer)]
    return State("blind", "Its Python stacks cannot be seen from here.", (way_in(answer.case.looks[-1]).why, *words))


# --- parts ---------------------------------------------------------------------------------------------------


def _mains(answer: Answer) -> list[Process]:
    last = answer.case.looks[-1]
    pids = {standing.stall.pid for standing in answer.standings}
    return [process for process in last.processes if process.pid in pids]


def _who(answer: Answer, standing: Standing) -> str:
    return next((who(p) for p in _mains(answer) if p.pid == standing.stall.pid), f"pid {standing.stall.pid}")


def _tracer(pid: int) -> int:
    tracer = proc.status(pid, "TracerPid")
    return int(tracer[0]) if tracer else 0


def _has_terminal(pid: int) -> bool:
    return any(is_terminal(proc.link(f"/proc/{pid}/fd/{fd}")) for fd in (0, 1, 2))
