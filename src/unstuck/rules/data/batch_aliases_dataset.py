"""batch-aliases-dataset: the training modifies its batches in place, and they are the dataset's own memory.

What it sees
    A batch lies in the memory of a tensor or array of the dataset, and has been modified before the training fetches
    the next one. The default collate function copies; `batch_size=None`, and a `collate_fn` that returns the samples
    as they are, do not. It is an error once a later epoch got a sample as the training had left it, and modified it
    once more. Before that it is a warning; if writing again changes nothing, it is information. A stream is not
    reported before that: it may read everything anew. Without a loader: batches are views (slices) of one tensor or
    array, and the same places come to the weights changed each time, by a line that leaves the batch just used as it
    was; or samples are such views, and modified before they are copied into a batch. Or what is kept for later (batches
    in a queue, states in a replay memory) is one and the same memory several times, and is modified while it is kept: a
    thread fills one buffer for all batches, an environment returns its own array.

Why it matters
    Each epoch trains on what the epoch before left: normalized twice, noise upon noise, values that fade to nothing or
    grow without bound. A validation on the same dataset sees them too. What is overwritten while it is kept no longer
    belongs to its label, action or reward.

Evidence
    The address of the batch and the attribute of the dataset it lies in, the sample, a number before and after, how
    often torch wrote to it, and in how many batches that was seen. How many samples a later epoch got as they had been
    left, and how many of these were modified again. The line is the one during which the memory changed.

Fix
    Modify a copy: `x = x.clone()` before the first in-place operation, or the operation that makes a new tensor
    (`x = x + noise`), or a copy where the dataset returns the sample. Put copies into queues and replay memories.

When it is wrong
    If a dataset returns views so that the training can write to them: a store of states that is updated through its
    batches. What the dataset writes itself, or what is written under its name, does not count; if other threads run,
    only changes in the batch in use count. Data on a GPU is not checked. Without a loader, a buffer that is filled anew
    comes back with other data, and a state that is advanced changes after its use: neither is reported, nor is what is
    written under the name of the tensor or array. Estimates refined through a view before each use would be. A list of
    references to parameters is left out.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Where
from unstuck.recorder.records.loaders import AliasedBatch, KeptInOnePlace, Number, RewrittenData
from unstuck.rules.loader_reports import latest
from unstuck.rules.rule import Rule
from unstuck.text import spot

FIX = (
    "Modify a copy: `x = x.clone()` before the first in-place operation, or use the operation that makes a new tensor "
    "(`x = x + y` for `x += y`, `x.add(y)` for `x.add_(y)`)."
)


def decide(case: Case) -> Iterable[Finding]:
    for report in latest(case, case.aliased_batches):
        batch, settings = report.state, report.settings
        held = f"{report.dataset}.{batch.attribute}"
        file, line, function = batch.line or settings.site or (None, None, None)
        who = spot(*batch.line[:2]) if batch.line else "the training"
        harm = "later epochs see changed data" if batch.harm else "the dataset has changed"
        one_by_one = settings.loader and settings.batch_size is None  # else its settings are not known
        yield RULE.finding(
            severity="error" if batch.harm else "info" if batch.again else "warning",
            confidence=0.97 if batch.line else 0.9,
            title=f"{who} modifies {held} in place: the batch is not a copy, and {harm}",
            evidence=(
                f"{'a batch' if batch.sample is None else f'sample {batch.sample}'} was at address "
                f"{batch.address:#x}, {batch.bytes} bytes inside {held}",
                _change(batch),
                f"of {batch.looks} batches checked, {batch.shared} lay in the dataset's memory and {batch.changes} "
                "were modified in place",
                _later_epochs(batch),
                "batch_size=None: samples are returned one by one, without the copy that batching makes"
                if one_by_one
                else "",
            ),
            where=Where(file, line, function, pid=batch.pid, sample=batch.sample, step=batch.step),
            fix=FIX,
        )
    for data in {data.pid: data for data in case.rewritten_data}.values():
        yield _without_loader(data)
    for kept in {kept.pid: kept for kept in case.kept_in_one_place}.values():
        yield _kept(kept)


def _kept(kept: KeptInOnePlace) -> Finding:
    file, line, function = kept.line or (None, None, None)
    who = "the script" if kept.line is None else f"{'the thread at ' if kept.called else ''}{spot(*kept.line[:2])}"
    before, after = kept.value_before, kept.value_after
    return RULE.finding(
        severity="error",
        confidence=0.95 if kept.line else 0.85,
        title=f"`{kept.name}` keeps the same memory again and again, and {who} goes on writing to it",
        evidence=(
            "several of its elements, or one of them and the batch in use, lie at the same address",
            f"at {kept.changes} of {kept.looks} looks, what it kept had changed since the look before",
            f"one number was {_text(before, 6)} and became {_text(after, 6)}"
            if before is not None and after is not None
            else "",
            f"{function} in that thread calls this memory `{kept.called}`" if kept.called else "",
        ),
        where=Where(file, line, function, pid=kept.pid, step=kept.step),
        fix="Keep a copy: `x.copy()` of an array (also before `torch.from_numpy`), `x.clone()` of a tensor.",
    )


def _without_loader(data: RewrittenData) -> Finding:
    file, line, function = data.line or (None, None, None)
    who = spot(*data.line[:2]) if data.line else "the training"
    size = " × ".join(str(length) for length in data.shape)
    before, after = data.value_before, data.value_after
    return RULE.finding(
        severity="error",
        confidence=0.95 if data.line else 0.85,
        title=f"{who} modifies the data in place: {'samples' if data.copied else 'batches'} are views of it, and later "
        "epochs see changed data",
        evidence=(
            f"rows of {data.looks} batches were the same as {data.places} rows of one tensor or array of {size}"
            if data.copied
            else f"{data.looks} batches checked at {data.places} places were views of one tensor or array of {size}",
            f"{_times(data.again)} a place came again with the same data changed, {_times(data.same)} as it had been",
            f"in {data.kept} steps followed line by line, {who} wrote into it and left the batch just used as it was: "
            "the next one is modified on its way to the model",
            f"one number was {_text(before, 6)} and came as {_text(after, 6)} the next time"
            if before is not None and after is not None
            else "",
        ),
        where=Where(file, line, function, pid=data.pid, step=data.step),
        fix=FIX,
    )


def _change(batch: AliasedBatch) -> str:
    parts = []
    before, after = batch.value_before, batch.value_after
    if before is not None and after is not None:
        digits = 6 if _text(before, 6) != _text(after, 6) else 17
        parts.append(f"the first number that changed was {_text(before, digits)} and became {_text(after, digits)}")
    first, last = batch.version_before, batch.version_after
    if first is not None and last is not None and last > first:
        parts.append(f"torch's version counter went from {first} to {last}")
    return "; ".join(parts) or "its bytes had changed when the next batch was fetched"


def _text(number: Number, digits: int) -> str:
    return f"{number:.{digits}g}" if isinstance(number, float) else str(number)


def _later_epochs(batch: AliasedBatch) -> str:
    if not batch.again:
        return "no modified sample has come again in a later epoch so far: what it would get is not known"
    modified = f"was modified again {_times(batch.rewritten)}" if batch.harm else "was not modified again"
    return f"a later epoch got a modified sample exactly as it had been left {_times(batch.again)}, and it {modified}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


RULE = Rule(
    "batch-aliases-dataset",
    "data",
    decide,
    explains=frozenset(("no-better-than-constant", "labels-unrelated-to-inputs")),
    gathers=True,
)
