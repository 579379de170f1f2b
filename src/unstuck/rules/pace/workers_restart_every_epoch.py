"""workers-restart-every-epoch: every epoch starts the loader's workers anew.

What it sees
    A loader without `persistent_workers` (or one that is built again for each epoch), and a tenth of the time or more
    that goes into starting epochs: from the start of one to its first batch, minus the time that making a batch takes
    anyway. Or a script that starts processes itself (a `Pool`, an executor), each with an interpreter and all imports,
    again and again between its steps, and a tenth of the time or more that the training waits until the first is ready.

Why it matters
    The workers end with each epoch and start again, with all their imports if the start method is spawn; nothing is
    trained until the first of them has made a batch.

Evidence
    Epochs, how long starting one takes and how long a batch takes to make, the share of the time that is lost. For
    processes of the script's own: how often, from the start of the interpreter to where its task begins.

Fix
    `persistent_workers=True`, on a loader that is built once; a pool that is made once, before the loop.

When it is wrong
    Persistent workers do not see what the script changes in the dataset between epochs. If it was seen to change, the
    fix says what.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix, Where
from unstuck.rules.pace.loader_waits import MIN_LOST_SHARE, LoaderWait, loader_waits, times
from unstuck.rules.pace.own_restarts import own_restarts
from unstuck.rules.rule import Rule
from unstuck.rules.words import seconds
from unstuck.text import spot

MIN_LOST_SECONDS = 2.5


def decide(case: Case) -> Iterable[Finding]:
    yield from _own(case)
    for wait in loader_waits(case)[:1]:
        lost, state = wait.restart_seconds, wait.state
        share = lost / wait.seconds
        if lost < MIN_LOST_SECONDS or share < MIN_LOST_SHARE:
            continue
        method = wait.settings.start_method
        yield RULE.finding(
            severity="warning",
            confidence=0.9,
            title=f"{share:.0%} of the time goes into restarting the workers for every epoch at {wait.report.line}",
            evidence=(
                f"{state.starts:,} epochs after the first: it took {seconds(state.starting / state.starts)} to the "
                f"first batch of each, and making a batch takes {seconds(wait.fetch_seconds)}",
                f"that is {seconds(lost)} of the {seconds(wait.seconds)} since the first batch, for {wait.workers_text}"
                f"{f' (start method {method})' if method else ''}",
                f"{times(1 / max(0.05, 1 - share))} as fast if they stayed alive",
            ),
            where=wait.report.where(),
            fix=_fix(case, wait),
        )


def _own(case: Case) -> Iterable[Finding]:
    for found in own_restarts(case):
        share = found.lost / max(1e-9, found.seconds)
        if found.lost < MIN_LOST_SECONDS or share < MIN_LOST_SHARE:
            continue
        where = Where(*found.site, pid=found.pid)
        yield RULE.finding(
            severity="warning",
            confidence=0.9,
            title=f"{share:.0%} of the time goes into starting processes again and again at {spot(*found.site)}",
            evidence=(
                f"after the first step, {found.processes:,} processes were started, at {found.rounds:,} moments: "
                f"each time it took {seconds(found.lost / found.rounds)} until the first had started Python, made its "
                "imports and could begin",
                f"that is {seconds(found.lost)} of {seconds(found.seconds)} from the first step to the last, in which "
                f"{found.steps:,} steps were made",
                f"{times(1 / max(0.05, 1 - share))} as fast if they stayed alive",
            ),
            where=where,
            fix="Make the pool (or start the processes) once, before the loop, and use the same one in each round.",
            seen_by="flight",
        )


def _fix(case: Case, wait: LoaderWait) -> str | Fix:
    loader = (wait.state.pid, wait.state.number)
    started = [each for each in case.workers_started if (each.pid, each.number) == loader]
    if any(each.replaced for each in started):
        return (
            "Make one dataset for all epochs, and one DataLoader with persistent_workers=True: now every epoch gives a "
            "new dataset to new workers."
        )
    rebuilt = wait.state.loaders > 2
    build = "Build the DataLoader once, before the loop, with" if rebuilt else "Give the DataLoader"
    changed = [name for each in started for name in each.changed]
    if not changed:
        stay = f"{build} persistent_workers=True: its workers then stay alive from epoch to epoch."
        return Fix(stay, setting="persistent workers")
    return (
        f"{build} persistent_workers=True, but only together with this: the script changes "
        f"`{max(changed, key=changed.count)}` of the dataset between epochs, which persistent workers would not see. "
        "Keep it where they do: in a multiprocessing.Value, or a tensor after share_memory_()."
    )


RULE = Rule("workers-restart-every-epoch", "pace", decide, gathers=True)
