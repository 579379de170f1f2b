"""cuda-out-of-memory: the GPU's memory was used up.

What it sees
    The run ended of torch's OutOfMemoryError: its allocator could not get one more piece of the GPU's memory.

Why it matters
    The exception is not caught, as a rule: the step cannot be made. Either every step keeps a little more than the one
    before, or one step needs more than there is: a larger batch, a longer sequence, a validation with gradients.

Evidence
    What was asked for and where; what was handed out, kept in reserve and there in all; who holds it: parameters,
    gradients, optimizer state, other tensors by shape, and what only autograd graphs hold; memory by steps up to then;
    the container that grows, where the process had said so.

Fix
    Let go of what grows. If nothing grows: smaller batches with gradient accumulation, checkpointing, half precision,
    `torch.no_grad()` in validation.

When it is wrong
    The line is the one that asked last, not always the one that holds most. Memory that other processes hold on the
    same GPU is only known as a sum.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from unstuck.model import Case, Finding, Fix, Where
from unstuck.recorder.records.deaths import DeviceState, Died, Owners
from unstuck.recorder.records.growth import Grower
from unstuck.rules.death.errors import user_line, whole
from unstuck.rules.death.holders import holders, place, sentence
from unstuck.rules.death.memory import remedy, size
from unstuck.rules.rule import Rule

_TRIED = re.compile(r"Tried to allocate ([\d.]+ [KMG]iB)")
POINTS = 4
"""Of the curve, before anything is said of its course."""
GROWS = 1.3
"""Memory before backward at the end against that at the beginning: from here on it counts as growing."""


def decide(case: Case) -> Iterable[Finding]:
    if case.outcome not in ("died", "stopped"):
        return
    for died in case.deaths:
        if any(each.type == "OutOfMemoryError" for each in whole(died.raised)):
            yield _finding(case, died)
            return


def _finding(case: Case, died: Died) -> Finding:
    told, step = died.device, died.step
    held = next((h for h in holders(case, died.pid) if h.times >= 1 and (h.graph or h.bytes)), None)
    tried = _TRIED.search(died.raised.message)
    line = user_line(died.raised)
    where = Where(line.file, line.line, line.function, pid=died.pid) if line is not None else Where(pid=died.pid)
    asked = f" {tried[1]} more" if tried else " more"
    evidence = [f"the allocator could not give{asked} at step {step:,}" if step else f"it could not give{asked}"]
    evidence += _state(told)
    evidence += _curve(told)
    if held is not None:
        evidence.append(sentence(held))
    leak = held is not None and _grows(told)
    return RULE.finding(
        severity="error",
        confidence=0.97,
        title="the GPU's memory was used up" + (f": {held.path} grows with every step" if leak and held else ""),
        evidence=tuple(evidence),
        where=replace(place(held) if leak and held and held.site else where, pid=died.pid, step=step),
        fix=Fix(_fix(told, held if leak else None)),
        seen_by="exit",
        also=(where,) if leak and held and held.site else (),
    )


def _state(told: DeviceState | None) -> list[str]:
    if told is None:
        return []
    free = told.free if told.free is not None else told.total - told.reserved
    others = told.total - free - told.reserved
    said = [
        f"{size(told.allocated)} were handed out and {size(max(0, told.reserved - told.allocated))} more kept in "
        f"reserve, of {size(told.total)} on {told.name}"
        + (f"; other processes and the driver hold {size(others)}" if others > 0.05 * told.total else "")
    ]
    if told.owners is not None:
        said.append("of that: " + ", ".join(_parts(told, told.owners)))
    for alike in told.shapes[:2]:
        if alike.bytes > 0.1 * told.allocated:
            graph = " with a graph" if alike.graph else ""
            said.append(f"{alike.count:,} tensors {tuple(alike.shape)} {alike.dtype}{graph}: {size(alike.bytes)}")
    return said


def _parts(told: DeviceState, owners: Owners) -> list[str]:
    named = {
        "parameters": owners.parameters,
        "gradients": owners.gradients,
        "optimizer state": owners.optimizer,
        "other tensors": owners.others,
    }
    parts = [f"{name} {size(count)}" for name, count in named.items() if count]
    rest = told.allocated - sum(named.values())
    if rest > 0.02 * told.allocated:
        where = "held by autograd graphs or inside torch" if told.all_seen else "not looked through"
        parts.append(f"{where} {size(rest)}")
    return parts


def _curve(told: DeviceState | None) -> list[str]:
    if told is None or len(told.curve) < POINTS:
        return []
    (first, start), (last, end) = told.curve[0], told.curve[-1]
    verb = "it rose with the steps" if _grows(told) else "it was level until then"
    return [f"{verb}: {size(start)} before backward at step {first:,}, {size(end)} at step {last:,}"]


def _grows(told: DeviceState | None) -> bool:
    """From the second point on: the first is taken before gradients and optimizer state are there."""
    curve = told.curve[1:] if told is not None else []
    if len(curve) < POINTS - 1:
        return False
    first, middle, last = curve[0][1], curve[len(curve) // 2][1], curve[-1][1]
    return last > GROWS * first and middle > 1.05 * first


def _fix(told: DeviceState | None, held: Grower | None) -> str:
    if held is not None:
        return remedy(held)
    if told is not None and told.reserved - told.allocated > 0.2 * told.total:
        return (
            "Much is reserved but in pieces too small: set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, "
            "and keep the sizes of batches alike."
        )
    if _grows(told):
        return "Something keeps what each step makes: look for lists of losses or outputs, and keep `.item()` of these."
    return "Take a smaller batch and accumulate gradients, use activation checkpointing or half precision."


RULE = Rule("cuda-out-of-memory", "death", decide, explains=frozenset({"memory-leak-in-loop", "uncaught-exception"}))
