"""too-few-workers: the loader's workers never idle, cores do, and the training waits.

What it sees
    Its workers make batches without a pause, the training waits a tenth of its time or more, and there is room for
    more workers: cores that it may use are idle, or the workers themselves wait for a disk or a network. Programs that
    they start for a sample count as theirs.

Why it matters
    Batches cannot come faster than those few workers make them, so the model idles for the rest of the time.

Evidence
    How busy the workers are, how long they need for a batch and how long the training does; the cores in use; the
    number of workers that would keep up, and how much faster the run would be with it.

Fix
    Set `num_workers` to the number given; `unstuck tune` measures which is best.

When it is wrong
    Workers that read from one slow disk do not become faster by being more. Each of them needs memory of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.rules.pace.loader_waits import cores_text, line_text, starving, times
from unstuck.rules.rule import Rule
from unstuck.rules.words import seconds

MIN_BUSY_SHARE = 0.8  # of the snapshots in which a worker makes a batch, on average
MIN_GAIN = 1.1  # times as fast with more workers


def decide(case: Case) -> Iterable[Finding]:
    wait = starving(case)
    if wait is None or not wait.workers or wait.busy < MIN_BUSY_SHARE or wait.busy_machine or wait.takes_turns:
        return
    wanted = wait.better_workers
    gain = wait.gain(wait.making, wanted) if wanted > wait.workers else 0.0
    if gain < MIN_GAIN:
        return
    yield RULE.finding(
        severity="warning",
        confidence=0.85,
        title=f"{wait.workers_text} cannot keep up: the training waits for data {wait.share:.0%} of the time",
        evidence=(
            wait.lost_text,
            f"a worker makes batches {wait.busy:.0%} of the time and needs {seconds(wait.making)} for one; what the "
            f"training does with it takes {seconds(wait.step_seconds)}",
            cores_text(wait.strain),
            line_text(wait.hot) if wait.hot is not None else "",
            f"{times(gain)} as fast with {wanted} workers"
            + ("" if wait.needs_cores else "; they mostly wait, which takes no core"),
        ),
        where=wait.report.where(),
        fix=Fix(
            f"Set num_workers={wanted} there; `unstuck tune` measures which number is best.",
            setting="workers",
            value=str(wanted),
        ),
        also=(wait.where(wait.hot),) if wait.hot is not None else (),
    )


RULE = Rule("too-few-workers", "pace", decide, explains=frozenset({"starved-for-data"}), gathers=True)
