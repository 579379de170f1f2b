"""cuda-out-of-memory: the GPU ran out of memory.

What it sees
    The run ended with torch's OutOfMemoryError: its allocator could not get another block of GPU memory.

Why it matters
    The step cannot be made, and the exception ends the run. Either every step keeps a little more than the one before,
    or one step needs more than there is: a larger batch, a longer sequence, a validation with gradients.

Evidence
    How much was requested and where; how much was allocated, reserved and there in total; what holds it: parameters,
    gradients, optimizer state, other tensors by shape, and what only autograd graphs hold; memory over the steps until
    then; the container that grows, if the process had reported one.

Fix
    Release what grows. If nothing grows: smaller batches with gradient accumulation, activation checkpointing, half
    precision, `torch.no_grad()` in validation.

When it is wrong
    The line is the one that requested memory last, not always the one that holds most. Of memory that other processes
    hold on the same GPU only the sum is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from unstuck.model import Case, Finding, Fix, Where
from unstuck.recorder.records.deaths import DeviceState, Died
from unstuck.rules.death.memory_growth import grower_fix, grower_site, grower_text, growers
from unstuck.rules.rule import Rule
from unstuck.rules.words import size

_TRIED = re.compile(r"Tried to allocate ([\d.]+ [KMG]iB)")
MIN_POINTS = 4  # of the memory curve: fewer show no trend
MIN_GROWTH_RATIO = 1.3  # memory before backward at the end compared with the beginning
FRAGMENTED_SHARE = 0.2  # of the GPU, reserved but not allocated: the blocks are too small to be used


def decide(case: Case) -> Iterable[Finding]:
    if case.outcome not in ("died", "stopped"):
        return
    for died in case.deaths:
        if any(raised.type == "OutOfMemoryError" for raised in (died.raised, *died.raised.chain)):
            yield _finding(case, died)
            return


def _finding(case: Case, died: Died) -> Finding:
    device, step = died.device, died.step
    held = next((g for g in growers(case, died.pid) if g.times >= 1 and (g.graph or g.bytes)), None)
    leak = held if _grows(device) else None
    tried = _TRIED.search(died.raised.message)
    lines = ((file, line, function) for file, line, function, user in died.raised.frames if user)
    file, line, function = next(lines, (None, None, None))
    where = Where(file, line, function, pid=died.pid)
    site = grower_site(leak) if leak is not None and leak.site else None
    return RULE.finding(
        severity="error",
        confidence=0.97,
        title="the GPU ran out of memory" + (f": {leak.path} grows with every step" if leak is not None else ""),
        evidence=(
            f"the allocator could not provide {tried[1] if tried else 'any'} more"
            + (f" at step {step:,}" if step else ""),
            *(_state(device) if device is not None else ()),
            grower_text(held) if held is not None else "",
        ),
        where=replace(site or where, pid=died.pid, step=step),
        fix=grower_fix(leak) if leak is not None else _fix(device),
        seen_by="exit",
        also=(where,) if site is not None else (),
    )


def _state(device: DeviceState) -> Iterable[str]:
    free = device.free if device.free is not None else device.total - device.reserved
    others = device.total - free - device.reserved
    yield (
        f"{size(device.allocated)} were allocated and {size(max(0, device.reserved - device.allocated))} more "
        f"reserved, of {size(device.total)} on {device.name}"
        + (f"; other processes and the driver hold {size(others)}" if others > 0.05 * device.total else "")
    )
    if device.owners is not None:
        yield "of that: " + ", ".join(_owners(device))
    for alike in device.shapes[:2]:
        if alike.bytes > 0.1 * device.allocated:
            graph = " with a graph" if alike.graph else ""
            yield f"{alike.count:,} tensors {tuple(alike.shape)} {alike.dtype}{graph}: {size(alike.bytes)}"
    if len(device.curve) >= MIN_POINTS:
        (first, start), (last, end) = device.curve[0], device.curve[-1]
        trend = "it rose with the steps" if _grows(device) else "it was level until then"
        yield f"{trend}: {size(start)} before backward at step {first:,}, {size(end)} at step {last:,}"


def _owners(device: DeviceState) -> Iterable[str]:
    owners = device.owners
    if owners is None:
        return
    named = {
        "parameters": owners.parameters,
        "gradients": owners.gradients,
        "optimizer state": owners.optimizer,
        "other tensors": owners.others,
    }
    yield from (f"{name} {size(count)}" for name, count in named.items() if count)
    rest = device.allocated - sum(named.values())
    if rest > 0.02 * device.allocated:
        yield f"{'held by autograd graphs or inside torch' if device.all_seen else 'not inspected'} {size(rest)}"


def _grows(device: DeviceState | None) -> bool:
    """From the second point on: at the first there are no gradients and no optimizer state yet."""
    curve = device.curve[1:] if device is not None else []
    if len(curve) < MIN_POINTS - 1:
        return False
    first, middle, last = curve[0][1], curve[len(curve) // 2][1], curve[-1][1]
    return last > MIN_GROWTH_RATIO * first and middle > 1.05 * first


def _fix(device: DeviceState | None) -> str | Fix:
    if device is not None and device.reserved - device.allocated > FRAGMENTED_SHARE * device.total:
        return (
            "Much is reserved, but in blocks that are too small: set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, "
            "and keep batches of similar size."
        )
    if _grows(device):
        return "Something keeps what each step makes: look for lists of losses or outputs, and keep `.item()` of these."
    smaller = "Use a smaller batch with gradient accumulation, activation checkpointing or half precision."
    return Fix(smaller, setting="accumulation")


RULE = Rule("cuda-out-of-memory", "death", decide, explains=frozenset({"memory-leak-in-loop", "uncaught-exception"}))
