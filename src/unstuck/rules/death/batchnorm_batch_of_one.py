"""batchnorm-batch-of-one: batch normalisation was given a single value per channel.

What it sees
    torch's own check in batch normalisation raised: in training mode it got one value per channel, which happens
    when a batch has one sample.

Why it matters
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

from unstuck.model import Case, Finding, Fix, Where
from unstuck.recorder.records.deaths import Raised
from unstuck.recorder.records.loaders import LoaderSettings
from unstuck.recorder.records.numerics import DrawnBatch
from unstuck.rules.death.died import Death, death
from unstuck.rules.death.errors import passes, said, spot, user_line, whole
from unstuck.rules.rule import Rule


def decide(case: Case) -> Iterable[Finding]:
    end = death(case)
    error = refused(end) if end is not None else None
    if end is None or end.died is None or error is None:
        return
    shape = end.died.batch_norm
    batch, settings = _batch(end.died.batches), _settings(end)
    size, last = settings.batch_size if settings is not None else None, _is_last(batch, settings)
    got = f"a batch of shape {shape}" if shape else "a batch of one sample"
    which = f"batch {batch.number + 1} of the pass" if batch is not None else "the batch"
    line = user_line(error)
    yield RULE.finding(
        severity="error",
        confidence=0.98,
        title=f"batch normalisation got a single sample at {spot(line)}"
        + (": the last batch of the epoch has one" if last else ""),
        evidence=(
            f"`{said(error)}`",
            f"batch normalisation, in training mode, got {got}",
            *([f"{which} had {batch.size} sample; batch_size is {size}"] if batch and batch.size and size else []),
            *_rest(settings, last),
            end.progress(),
        ),
        where=end.where(line, end.died),
        fix=Fix(_fix(last, size)),
        seen_by="exit",
        also=(Where(*settings.site),) if last and settings is not None and settings.site else (),
    )


def refused(end: Death) -> Raised | None:
    found = whole(end.died.raised) if end.died is not None else ()
    return next((e for e in found if passes(e, "torch/nn/functional.py", function="_verify_batch_size")), None)


def _batch(batches: list[DrawnBatch]) -> DrawnBatch | None:
    """The batch in work: the one loader's that has given one; several are told apart by its size."""
    ones = [batch for batch in batches if batch.size == 1] or batches
    return ones[0] if len(ones) == 1 else None


def _settings(end: Death) -> LoaderSettings | None:
    told = [each for each in end.case.loaders if each.pid == end.pid and each.batch_size]
    rest = [each for each in told if _leaves_one(each)]
    return (rest or told)[-1] if told else None


def _leaves_one(settings: LoaderSettings) -> bool:
    return bool(settings.samples and settings.batch_size and settings.samples % settings.batch_size == 1)


def _is_last(batch: DrawnBatch | None, settings: LoaderSettings | None) -> bool:
    """A single sample where more are asked for can only be the rest at the end."""
    if settings is None or (settings.batch_size or 0) <= 1 or settings.drop_last:
        return False
    return (batch is not None and batch.size == 1) or _leaves_one(settings)


def _rest(settings: LoaderSettings | None, last: bool) -> list[str]:
    if not last or settings is None or not settings.samples or not settings.batch_size:
        return []
    samples, size = settings.samples, settings.batch_size
    return [f"{samples:,} samples in batches of {size} leave a rest of {samples % size}, and drop_last is off"]


def _fix(last: bool, size: int | None) -> str:
    if last:
        return "Set `drop_last=True` in this DataLoader (or choose a batch size that leaves no rest of one)."
    if size == 1:
        return "Use a batch size of at least 2, or a normalisation that needs no batch (GroupNorm, LayerNorm)."
    return "Call `model.eval()` where a single sample is only looked at; give training at least two samples a batch."


RULE = Rule("batchnorm-batch-of-one", "death", decide)
