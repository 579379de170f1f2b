"""waits-on-rank: blocked in a collective that another rank has not joined.

What it sees
    The main thread of a rank is inside a call of torch.distributed.

Why it matters
    A collective returns only when every rank has reached it. If one rank is elsewhere, all others stand still with
    their GPUs until the timeout of the process group kills the job.

Evidence
    The call and its line in the user's code, and where the other ranks of this machine are.

Fix
    Find out why the missing rank is elsewhere; every rank must make the same calls in the same order.

When it is wrong
    A rank that is merely late. Reported only after a very long time, at Ctrl-C, or by `unstuck attach` if every rank
    can be seen and all are in a collective.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Process
from unstuck.rules import rank_words
from unstuck.rules.hang.blocked import blocked, gradients_call
from unstuck.rules.hang.standstill import Standstill
from unstuck.rules.hang.waiting import collective_call
from unstuck.rules.rank_positions import in_backward
from unstuck.rules.rule import Rule
from unstuck.rules.words import place, who


def decide(case: Case) -> Iterable[Finding]:
    for still in blocked(case, "collective"):
        if not still.long:
            continue  # what is proven about ranks, the rules about all of them say
        frame, gradients = collective_call(still.thread), gradients_call(still)
        call = frame.function if frame is not None else rank_words.kind(gradients) if gradients is not None else ""
        if not call:
            continue
        yield still.finding(
            RULE,
            title=f"{still.who} is waiting in {call} for a rank that does not join",
            evidence=(
                f"{still.who} has been in {call}, called at {place(still.frame)}, for {still.lasting}",
                *(f"{who(p)} is {_doing(p)} at {place(p.user_frame)}" for p in _elsewhere(still)),
            ),
            fix="Let every rank make the same collective calls in the same order; look at the rank that is elsewhere.",
            seen_by=still.stacks_by,
        )


def _elsewhere(still: Standstill) -> list[Process]:
    """Ranks whose clock stopped outside any collective; else processes of the same launcher that are outside."""
    stalled = [p for stall in still.case.stalls if (p := still.look.process(stall.pid)) and _is_outside(p, still)]
    stalled = [p for p in stalled if p.pid != still.process.ppid]  # whoever started it is no rank
    siblings = [p for p in still.look.processes if p.ppid == still.process.ppid and p.is_python]
    return stalled or [p for p in siblings if _is_outside(p, still) and p.user_frame][:4]


def _doing(process: Process) -> str:
    """A backward pass may be one of DistributedDataParallel, which is a collective: from outside nobody knows."""
    backward = process.main_thread is not None and in_backward(process.main_thread)
    return "in a backward pass" if backward else "not in a collective: it is"


def _is_outside(process: Process, still: Standstill) -> bool:
    main = process.main_thread
    return process.pid != still.process.pid and main is not None and not collective_call(main)


RULE = Rule("waits-on-rank", "hang", decide, disproved_by_end=True)
