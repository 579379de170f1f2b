"""workers-restart-every-epoch: every pass over the loader starts its workers anew.

What it sees
    A loader without `persistent_workers` (or one that is built again for each epoch), and a tenth of the time or more
    that goes into beginning passes: from asking for the pass to its first batch, less the time that making a batch
    takes anyway.

Why it matters
    It crawls: the workers are ended at the end of each pass and started again, with all their imports where the start
    method is spawn; nothing is trained until the first of them has made a batch.

Evidence
    Passes, what beginning one takes and how long a batch takes to make, the share of the time that is lost.

Fix
    `persistent_workers=True`, on a loader that is built once.

When it is wrong
    Persistent workers do not see what the script changes in the data set between epochs. Where it was seen to change,
    the fix says what.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.rules.pace.measured import COSTLY, Waiting, times, waits
from unstuck.rules.rule import Rule
from unstuck.rules.words import seconds

LEAST = 2.5
"""Seconds that must have been lost."""
STARTS = 3


def decide(case: Case) -> Iterable[Finding]:
    for waiting in waits(case)[:1]:
        lost = restarting(waiting)
        share = lost / waiting.seconds
        if lost < LEAST or share < COSTLY:
            continue
        state = waiting.state
        yield RULE.finding(
            severity="warning",
            confidence=0.9,
            title=f"{share:.0%} of the time goes into starting the workers again for every pass at "
            f"{waiting.about.line}",
            evidence=(
                f"{state.starts:,} passes after the first: from asking for one to its first batch took "
                f"{seconds(state.starting / state.starts)}, making a batch takes "
                f"{seconds(waiting.fetched)}",
                f"that is {seconds(lost)} of the {seconds(waiting.seconds)} since the first batch, for "
                f"{waiting.workers} workers{_started(waiting)}",
                f"{times(1 / max(0.05, 1 - share))} as fast if they lived on",
            ),
            where=waiting.loop,
            fix=Fix(_fix(case, waiting)),
            seen_by="flight",
        )


def _fix(case: Case, waiting: Waiting) -> str:
    same = (waiting.pid, waiting.state.number)
    started = [each for each in case.workers_started if (each.pid, each.number) == same]
    if any(each.replaced for each in started):
        return (
            "Make one data set for all passes, and one DataLoader with persistent_workers=True: now a new one is "
            "handed to new workers in every pass."
        )
    anew = waiting.state.loaders > 2
    build = "Build the DataLoader once, before the loop, and give it" if anew else "Give the DataLoader"
    changed = [name for each in started for name in each.changed]
    if changed:
        most = max(changed, key=changed.count)
        return (
            f"{build} persistent_workers=True, but only together with this: the script changes `{most}` of the data "
            "set between passes, which workers that live on would not see. Keep it where they do: in a "
            "multiprocessing.Value, or a tensor after share_memory_()."
        )
    return f"{build} persistent_workers=True: its workers then live from pass to pass."


def restarting(waiting: Waiting) -> float:
    """Seconds that went into starting workers that could have lived on."""
    state = waiting.state
    lives = waiting.settings.persistent_workers and state.loaders <= 2
    if not waiting.workers or lives or state.starts < STARTS:
        return 0.0
    lost = max(0.0, state.starting - state.starts * waiting.fetched)
    return lost * (1 - waiting.stolen)  # on a machine that others use everything takes longer


def _started(waiting: Waiting) -> str:
    method = waiting.settings.start_method
    return f" (start method {method})" if method else ""


RULE = Rule("workers-restart-every-epoch", "pace", decide, gathers=True)
