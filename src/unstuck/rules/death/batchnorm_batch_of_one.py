"""batchnorm-batch-of-one: batch normalization got a single value per channel.

What it sees
    torch's own check in batch normalization raised: in training mode it got one value per channel, which happens
    when a batch has one sample.

Why it matters
    The variance of one value is zero, so torch refuses and the run ends. Most often the dataset leaves a remainder of
    one sample, and every epoch ends with that batch.

Evidence
    The shape that batch normalization got, and which batch of the epoch it was.

Fix
    `drop_last=True` in the training's DataLoader, or another batch size; `model.eval()` where a single sample is only
    evaluated.

When it is wrong
    With `batch_size=1` every batch has one sample: then dropping the last one does not help, and the fix says so.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix, Where
from unstuck.recorder.records.loaders import LoaderSettings
from unstuck.recorder.records.numerics import DrawnBatch
from unstuck.rules.death.post_mortem import Death, death, exception_text, goes_through, user_line, with_causes
from unstuck.rules.rule import Rule
from unstuck.rules.words import place


def decide(case: Case) -> Iterable[Finding]:
    end = death(case)
    died = end.died if end is not None else None
    if end is None or died is None:
        return
    refusals = (
        raised
        for raised in with_causes(died.raised)
        if goes_through(raised, "torch/nn/functional.py", function="_verify_batch_size")
    )
    error = next(refusals, None)
    if error is None:
        return
    batch, settings, line = _batch(died.batches), _settings(end), user_line(error)
    size = settings.batch_size if settings is not None else None
    last = _is_last(batch, settings)
    shape = f"a batch of shape {died.batch_norm}" if died.batch_norm else "a batch of one sample"
    yield RULE.finding(
        severity="error",
        confidence=0.98,
        title=f"batch normalization got a single sample at {place(line)}"
        + (": the last batch of the epoch has only one" if last else ""),
        evidence=(
            f"`{exception_text(error)}`",
            f"batch normalization, in training mode, got {shape}",
            f"batch {batch.number + 1} of the epoch had {batch.size} sample; batch_size is {size}"
            if batch and batch.size and size
            else "",
            _remainder(settings) if last and settings is not None else "",
            end.progress(),
        ),
        where=end.where(line, died),
        fix=_fix(last, size),
        seen_by="exit",
        also=(Where(*settings.site),) if last and settings is not None and settings.site else (),
    )


def _batch(batches: list[DrawnBatch]) -> DrawnBatch | None:
    """The batch in use, if one loader alone can have given it."""
    ones = [batch for batch in batches if batch.size == 1] or batches
    return ones[0] if len(ones) == 1 else None


def _settings(end: Death) -> LoaderSettings | None:
    """The latest loader, of those that leave a remainder of one if there are any."""
    batched = [loader for loader in end.case.loaders if loader.pid == end.pid and loader.batch_size]
    return next(reversed([loader for loader in batched if _leaves_one(loader)] or batched), None)


def _leaves_one(settings: LoaderSettings) -> bool:
    return bool(settings.samples and settings.batch_size and settings.samples % settings.batch_size == 1)


def _is_last(batch: DrawnBatch | None, settings: LoaderSettings | None) -> bool:
    """A single sample where batches have more can only be the remainder at the end."""
    if settings is None or (settings.batch_size or 0) <= 1 or settings.drop_last:
        return False
    return (batch is not None and batch.size == 1) or _leaves_one(settings)


def _remainder(settings: LoaderSettings) -> str:
    samples, size = settings.samples, settings.batch_size
    if not samples or not size:
        return ""
    return f"{samples:,} samples in batches of {size} leave a remainder of {samples % size}, and drop_last is off"


def _fix(last: bool, size: int | None) -> str | Fix:
    if last:
        return Fix(
            "Set `drop_last=True` in this DataLoader (or choose a batch size that leaves no remainder of one).",
            setting="drop last",
        )
    if size == 1:
        return "Use a batch size of at least 2, or a normalization that needs no batch (GroupNorm, LayerNorm)."
    return "Call `model.eval()` where a single sample is only evaluated; train with at least two samples per batch."


RULE = Rule("batchnorm-batch-of-one", "death", decide)
