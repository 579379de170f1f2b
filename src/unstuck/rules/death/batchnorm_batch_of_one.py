"""batchnorm-batch-of-one: batch normalisation was given a single value per channel.

What it sees
    torch's own check in batch normalisation raised: in training mode it got one value per channel, which happens
    when a batch has one sample.

Why training stops
    The variance of one value is zero: there is nothing to normalise by, so torch refuses. Most often the number of
    samples leaves a rest of one, and the last batch of every epoch is that one.

Evidence
    The shape that batch normalisation got, and which batch of the pass it was.

Fix
    `drop_last=True` in the training's DataLoader, or another batch size; `model.eval()` where a single sample is
    only looked at.

When it is wrong
    With `batch_size=1` every batch is such a one: then dropping the last one does not help, and the fix says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from unstuck.model import Case, Finding, Fix, Where
from unstuck.rules.death.died import Death, death
from unstuck.rules.death.errors import Error, spot
from unstuck.rules.rule import Rule


def decide(case: Case) -> Iterable[Finding]:
    end = death(case)
    error = refused(end) if end is not None else None
    if end is None or error is None:
        return
    shape = (end.error.torch if end.error is not None else {}).get("batch_norm") or []
    batch, settings = _batch(end), _settings(end)
    size, last = settings.get("batch_size"), _is_last(batch, settings)
    got = f"a batch of shape {shape}" if shape else "a batch of one sample"
    which = f"batch {batch['number'] + 1} of the pass" if batch else "the batch"
    site = settings.get("site") if last else None
    yield Finding(
        rule=RULE.name,
        family=RULE.family,
        severity="error",
        confidence=0.98,
        title=f"batch normalisation got a single sample at {spot(error.user)}"
        + (": the last batch of the epoch has one" if last else ""),
        evidence=(
            f"`{error.said}`",
            f"batch normalisation, in training mode, got {got}",
            *([f"{which} had {batch['size']} sample; batch_size is {size}"] if batch.get("size") and size else []),
            *_rest(settings, last),
            end.progress(),
        ),
        where=end.where(error.user, error),
        fix=Fix(_fix(last, size)),
        seen_by="exit",
        also=(Where(*site),) if isinstance(site, list) and len(site) == 3 else (),
    )


def refused(end: Death) -> Error | None:
    found = end.error.whole if end.error is not None else ()
    return next((e for e in found if e.passes("torch/nn/functional.py", function="_verify_batch_size")), None)


def _batch(end: Death) -> dict[str, Any]:
    """The batch in work: the one loader's that has given one; several are told apart by its size."""
    told = [b for b in (end.error.data.get("batches") if end.error else None) or () if isinstance(b, dict)]
    ones = [b for b in told if b.get("size") == 1] or told
    return ones[0] if len(ones) == 1 else {}


def _settings(end: Death) -> dict[str, Any]:
    told = [f.data for f in end.case.facts if f.kind == "loader" and f.pid == end.pid and f.data.get("batch_size")]
    rest = [d for d in told if d.get("samples") and d["samples"] % d["batch_size"] == 1]
    return dict((rest or told)[-1]) if told else {}


def _is_last(batch: dict[str, Any], settings: dict[str, Any]) -> bool:
    """A single sample where more are asked for can only be the rest at the end."""
    size = settings.get("batch_size") or 0
    if size <= 1 or settings.get("drop_last"):
        return False
    return batch.get("size") == 1 or bool(settings.get("samples") and settings["samples"] % size == 1)


def _rest(settings: dict[str, Any], last: bool) -> list[str]:
    samples, size = settings.get("samples"), settings.get("batch_size")
    if not (last and samples and size):
        return []
    return [f"{samples:,} samples in batches of {size} leave a rest of {samples % size}, and drop_last is off"]


def _fix(last: bool, size: int | None) -> str:
    if last:
        return "Set `drop_last=True` in this DataLoader (or choose a batch size that leaves no rest of one)."
    if size == 1:
        return "Use a batch size of at least 2, or a normalisation that needs no batch (GroupNorm, LayerNorm)."
    return "Call `model.eval()` where a single sample is only looked at; give training at least two samples a batch."


RULE = Rule("batchnorm-batch-of-one", "death", decide)
