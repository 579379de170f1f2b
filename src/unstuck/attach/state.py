"""The answer in one word and one sentence: stuck, running, stopped, unclear; and why, where it cannot be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from unstuck.attach.activity import activity
from unstuck.attach.inspection import Answer
from unstuck.attach.standing import Standing
from unstuck.model import Process
from unstuck.observe import proc
from unstuck.observe.fds import is_terminal
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
    if not any(standing.process.stacks_by or standing.process.recorded for standing in answer.standings):
        return _blind(answer)
    unclear = [s for s in answer.standings if _unclear(answer, s)]
    if unclear and len(unclear) == len(answer.standings):
        return _unclear_state(answer, unclear[0])
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
        said.append(f"its time over {seconds(answer.seconds)}: {parts}")
    if answer.moved.get(standing.stall.pid):
        said.append(f"it moves: {answer.moved[standing.stall.pid]} between two looks")
    for each in answer.standings:
        if each.stall.excuse:
            said.append(f"{_who(answer, each)}: {each.stall.excuse}")
        elif each.process.pid != each.stall.pid:
            said.append(f"{_who(answer, each)} waits for {who(each.process)}, which is at work")
    return State("running", f"It is running: {doing(answer)}.", tuple(dict.fromkeys(said)))


def _unclear(answer: Answer, standing: Standing) -> bool:
    """Nothing was seen to move, and nothing says that this is as it should be."""
    if standing.stall.excuse or answer.moved.get(standing.stall.pid):
        return False
    shares = answer.shares.get(standing.stall.pid, [])
    if len([share for _, share in shares if share >= 0.02]) > 1:
        return False
    return standing.undecided or _blocked(standing) or _own_loop(standing)


def _blocked(standing: Standing) -> bool:
    wait = standing.thread.wait if standing.thread else None
    return wait is not None and wait.kind not in ("running", "unknown", "other") and standing.stall.standing >= 1.0


def _own_loop(standing: Standing) -> bool:
    """It computes in code of the user's own that is no part of a training step."""
    thread = standing.thread
    return thread is not None and activity(standing.process, thread).word.startswith("computing in its own code")


def _unclear_state(answer: Answer, standing: Standing) -> State:
    thread = standing.thread
    user = next((f for f in thread.frames if f.user), None) if thread else None
    pid = answer.case.root
    lasting = seconds(standing.stall.standing)
    said = [f"{who(standing.process)} has been at {place(user)} for at least {lasting}"] if user else []
    if _own_loop(standing):
        loop = f"the loop at {lines(user.loop)} of {user.function}" if user and user.loop else "this code"
        said += [
            f"it computes. Whether {loop} ever ends cannot be seen from outside: long honest work looks the same",
            f"`unstuck attach {pid} --watch` speaks when it moves on; under `unstuck run` its own pace would tell",
        ]
        return State("unclear", f"It computes, and passes no batch and no step: {place(user)}.", tuple(said))
    wait = thread.wait if thread else None
    if wait is not None and wait.timed:
        said += [
            "it waits with a limit of time, wakes, and waits again: only its own code knows what for",
            f"`unstuck attach {pid} --watch` speaks when it moves on",
        ]
    elif standing.stall.standing < answer.case.times.suspect:
        said += [f"that is too short to tell a wait from a hang: `unstuck attach {pid} --seconds 30`"]
    else:
        said += [
            "somebody else of this run is at work, for whom it may be waiting",
            f"`unstuck attach {pid} --watch` speaks when it moves on",
        ]
    word = activity(standing.process, thread).word
    return State("unclear", f"It did not move while it was looked at: {word}.", tuple(said))


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
    words = [f"{who(p)} is {activity(p, p.main_thread).word}" for p in _mains(answer)]
    return State("blind", "Its Python stacks cannot be seen from here.", tuple(words))


# --- parts ---------------------------------------------------------------------------------------------------


def _mains(answer: Answer) -> list[Process]:
    last = answer.case.looks[-1]
    pids = {standing.stall.pid for standing in answer.standings}
    return [process for process in last.processes if process.pid in pids]


def _who(answer: Answer, standing: Standing) -> str:
    return next((who(p) for p in _mains(answer) if p.pid == standing.stall.pid), f"pid {standing.stall.pid}")


def _tracer(pid: int) -> int:
    for line in proc.maybe(f"/proc/{pid}/status").splitlines():
        if line.startswith("TracerPid:"):
            return int(line.split()[1])
    return 0


def _has_terminal(pid: int) -> bool:
    return any(is_terminal(proc.link(f"/proc/{pid}/fd/{fd}")) for fd in (0, 1, 2))
