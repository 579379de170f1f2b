"""cuda-out-of-memory: the GPU's memory was used up.

What it sees
    The run ended of torch's OutOfMemoryError: its allocator could not get one more piece of the GPU's memory.

Why training stops
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
from typing import Any

from unstuck.model import Case, Fact, Finding, Fix, Where
from unstuck.rules.death.holders import Holder, holders
from unstuck.rules.death.memory import remedy, size
from unstuck.rules.rule import Rule

_TRIED = re.compile(r"Tried to allocate ([\d.]+ [KMG]iB)")
OWNERS = {
    "parameters": "parameters",
    "gradients": "gradients",
    "optimizer": "optimizer state",
    "others": "other tensors",
}
GROWS = 1.3
"""Memory before backward at the end against that at the beginning: from here on it counts as growing."""


def decide(case: Case) -> Iterable[Finding]:
    if case.outcome not in ("died", "stopped"):
        return
    for fact in case.facts:
        if fact.kind == "exception" and _is_it(fact.data):
            yield _finding(case, fact)
            return


def _is_it(data: dict[str, Any]) -> bool:
    return any(each.get("type") == "OutOfMemoryError" for each in (data, *(data.get("chain") or ())))


def _finding(case: Case, fact: Fact) -> Finding:
    told: dict[str, Any] = fact.data.get("device") or {}
    held = next((h for h in holders(case, fact.pid) if h.times >= 1 and (h.graph or h.size)), None)
    tried = _TRIED.search(str(fact.data.get("message")))
    where = _where(fact)
    step = fact.data.get("step")
    asked = f" {tried[1]} more" if tried else " more"
    evidence = [f"the allocator could not give{asked} at step {step:,}" if step else f"it could not give{asked}"]
    evidence += _state(told)
    evidence += _curve(told)
    if held is not None:
        evidence.append(held.sentence)
    leak = held is not None and _grows(told)
    return Finding(
        rule=RULE.name,
        family=RULE.family,
        severity="error",
        confidence=0.97,
        title="the GPU's memory was used up" + (f": {held.path} grows with every step" if leak and held else ""),
        evidence=tuple(evidence),
        where=replace(held.where if leak and held and held.file else where, pid=fact.pid, step=step),
        fix=Fix(_fix(told, held if leak else None)),
        seen_by="exit",
        also=(where,) if leak and held and held.file else (),
    )


def _where(fact: Fact) -> Where:
    """The innermost line of the user's own code."""
    for frame in fact.data.get("frames") or ():
        if len(frame) < 4 or frame[3]:
            return Where(file=frame[0], line=frame[1], function=frame[2], pid=fact.pid)
    return Where(pid=fact.pid)


def _state(told: dict[str, Any]) -> list[str]:
    if not told:
        return []
    others = told["total"] - told.get("free", told["total"] - told["reserved"]) - told["reserved"]
    spare = max(0, told["reserved"] - told["allocated"])
    said = [
        f"{size(told['allocated'])} were handed out and {size(spare)} more kept in reserve, "
        f"of {size(told['total'])} on {told['name']}"
        + (f"; other processes and the driver hold {size(others)}" if others > 0.05 * told["total"] else "")
    ]
    sums: dict[str, int] = told.get("owners") or {}
    if sums:
        graphs = told["allocated"] - sum(sums.values())
        parts = [f"{name} {size(sums[key])}" for key, name in OWNERS.items() if sums.get(key)]
        if graphs > 0.02 * told["allocated"]:
            parts.append(f"held by autograd graphs or inside torch {size(graphs)}")
        said.append("of that: " + ", ".join(parts))
    for shape in (told.get("shapes") or ())[:2]:
        if shape["bytes"] > 0.1 * told["allocated"]:
            graph = " with a graph" if shape["graph"] else ""
            said.append(f"{shape['count']:,} tensors {shape['shape']} {shape['dtype']}{graph}: {size(shape['bytes'])}")
    return said


def _curve(told: dict[str, Any]) -> list[str]:
    curve = told.get("curve") or []
    if len(curve) < 2:
        return []
    (first, start), (last, end) = curve[0], curve[-1]
    verb = "it rose with the steps" if _grows(told) else "it was level until then"
    return [f"{verb}: {size(start)} before backward at step {first:,}, {size(end)} at step {last:,}"]


def _grows(told: dict[str, Any]) -> bool:
    """From the second point on: the first is taken before gradients and optimizer state are there."""
    curve = (told.get("curve") or [])[1:]
    return len(curve) >= 3 and curve[-1][1] > GROWS * curve[0][1] and curve[len(curve) // 2][1] > 1.05 * curve[0][1]


def _fix(told: dict[str, Any], held: Holder | None) -> str:
    if held is not None:
        return remedy(held)
    if told and told["reserved"] - told["allocated"] > 0.2 * told["total"]:
        return (
            "Much is reserved but in pieces too small: set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, "
            "and keep the sizes of batches alike."
        )
    if _grows(told):
        return "Something keeps what each step makes: look for lists of losses or outputs, and keep `.item()` of these."
    return "Take a smaller batch and accumulate gradients, use activation checkpointing or half precision."


RULE = Rule("cuda-out-of-memory", "death", decide, explains=frozenset({"memory-leak-in-loop", "uncaught-exception"}))
