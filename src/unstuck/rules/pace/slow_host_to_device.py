"""slow-host-to-device: batches are copied to the GPU out of memory that is not pinned.

What it sees
    A training on a GPU whose batches are large and whose loader does not pin them. It asks; it does not decide.

Why training stops
    It crawls: a copy out of ordinary memory goes through a buffer of the driver's, and the training process stands
    still meanwhile.

Evidence
    None that is proof during a run: such a copy also waits for the work before it on the GPU, and telling the two
    apart would need a synchronisation, which would change the run.

Fix
    `pin_memory=True` on the loader, and `.to(device, non_blocking=True)`.

When it is wrong
    Trainings on a CPU, small batches and pinned ones: there it does not even ask.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Question
from unstuck.rules.death.sizes import size
from unstuck.rules.pace.measured import loaders
from unstuck.rules.rule import Rule

LARGE = 1_000_000
"""Bytes of a batch from which on its copy can be felt."""


def decide(case: Case) -> Iterable[Question]:
    on_device = {fact.pid for fact in case.facts if fact.kind == "growth" and fact.data.get("device")}
    for about in loaders(case):
        flight = case.flight_of(about.fact.pid)
        if flight is None or about.fact.pid not in on_device or about.settings.get("pin_memory"):
            continue
        if flight.batch_bytes < LARGE:
            continue
        yield Question(
            RULE.name,
            f"whether copying batches of {size(flight.batch_bytes)} to the GPU out of memory that is not pinned holds "
            f"up the training at {about.line}",
            "the same training with pin_memory=True and .to(device, non_blocking=True)",
        )
        return


RULE = Rule("slow-host-to-device", "pace", decide, asks_only=True)
