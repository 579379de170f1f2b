"""too-few-workers: the loader's workers never rest, processors are idle, and the training waits.

What it sees
    Its workers make batches without a pause, the training waits a tenth of its time or more, and there is room for
    more of them: processors that it may use are idle, or the workers themselves wait for a disk or a network.
    What programs use that they start for a sample counts as theirs.

Why it matters
    It crawls: batches cannot come faster than those few can make them.

Evidence
    How busy the workers are, how long a batch takes them and how long the training needs for one; the processors in
    use; the number of workers that would keep up, and how much faster the run would be with it.

Fix
    Set `num_workers` to the number that is named; `unstuck tune` measures which is best.

When it is wrong
    Workers that read from one slow disk do not become faster by being more. Each of them needs memory of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.rules.pace.measured import Waiting, machine, starving, times
from unstuck.rules.pace.starved_for_data import better_number, described, hot_line
from unstuck.rules.pace.workers_take_turns import take_turns
from unstuck.rules.rule import Rule
from unstuck.rules.words import seconds

BUSY = 0.8
"""Share of the looks in which a worker makes a batch, on average."""
WORTH = 1.1
"""Times as fast it must become."""


def decide(case: Case) -> Iterable[Finding]:
    waiting = starving(case)
    if waiting is None or not waiting.workers or waiting.strain is None or waiting.busy_machine:
        return
    wanted = better_number(waiting)
    gain = waiting.faster(waiting.making, wanted) if wanted > waiting.workers else 0.0
    if waiting.busy < BUSY or gain < WORTH or take_turns(waiting):
        return
    hot = hot_line(waiting)
    yield RULE.finding(
        severity="warning",
        confidence=0.85,
        title=f"{_workers(waiting)} cannot keep up: the training waits for data {waiting.share:.0%} of the time; "
        f"{wanted} would make it {times(gain)} as fast",
        evidence=(
            waiting.lost,
            f"a worker makes batches {waiting.busy:.0%} of the time; one takes it {seconds(waiting.making)}, and what "
            f"the training does with it takes {seconds(waiting.between)}",
            machine(waiting.strain),
            *([described(hot)] if hot is not None else []),
        ),
        where=waiting.loop,
        fix=Fix(f"Set num_workers={wanted} there; `unstuck tune` measures which number is best."),
        seen_by="flight",
        also=(waiting.where(hot),) if hot is not None else (),
    )


def _workers(waiting: Waiting) -> str:
    return "one worker" if waiting.workers == 1 else f"{waiting.workers} workers"


RULE = Rule("too-few-workers", "pace", decide, explains=frozenset(("starved-for-data",)), gathers=True)
