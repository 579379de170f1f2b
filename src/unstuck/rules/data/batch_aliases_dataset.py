"""batch-aliases-dataset: the training writes into its batches, and these are the data set's own memory.

What it sees
    A batch is handed out that lies in the memory of a tensor or array of the data set, and before the next one is asked
    for its numbers have changed. The default collate function copies; `batch_size=None`, and a `collate_fn` that
    returns the samples as they are, do not. It is an error once a later pass was given a sample as the training had
    left it, and that was changed once more. Before that it is a warning; where writing again changes nothing, it is
    information. Of a stream nothing is said before that: it may read everything anew.

Why it matters
    It does not. But each pass starts from what the pass before left: normalised twice, noise upon noise, values that
    fade to nothing or grow without bound. A validation on the same data set sees them too.

Evidence
    The address of the batch and the attribute of the data set it lies in, the sample, a number before and after, how
    often torch wrote to it, and in how many batches that was seen. How many samples a later pass was given as they had
    been left, and how many of these were changed again. The line is the one during which the memory changed.

Fix
    Write to a copy: `x = x.clone()` before the first operation in place, or the operation that makes a new tensor
    (`x = x + noise`), or a copy where the data set gives the sample out.

When it is wrong
    If a data set gives out views so that the training can write to them: a store of states that is updated through
    its batches. What the data set writes itself, or what is written under its name, is not counted, and where threads
    run beside the training only what changes in the batch in work. Data that lie on a device are not looked at.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix, Where
from unstuck.recorder.records.loaders import AliasedBatch, Number
from unstuck.rules.loader_reports import LoaderReport, latest
from unstuck.rules.rule import Rule


def decide(case: Case) -> Iterable[Finding]:
    for about in latest(case, case.aliased_batches):
        batch, line = about.state, about.state.line
        held = f"{about.dataset}.{batch.attribute}"
        file, number, function = line or about.settings.site or (None, None, None)
        spot = f"{os.path.basename(file)}:{number}" if line and file else "the training"
        harm = ", and later passes see changed data" if batch.harm else ", and the data set has changed"
        yield RULE.finding(
            severity="error" if batch.harm else "info" if batch.again else "warning",
            confidence=0.97 if line else 0.9,
            title=f"{spot} writes into {held} itself: the batch is no copy{harm}",
            evidence=(
                _where_it_lies(batch, held),
                _what_changed(batch),
                f"of {batch.looks} batches looked at, {batch.shared} lay in the data set's memory; "
                f"{batch.changes} times one was found written to before the next was asked for",
                _came_again(batch),
                *_no_copy(about),
            ),
            where=Where(file, number, function, pid=batch.pid, sample=batch.sample, step=batch.step),
            fix=Fix(
                "Write to a copy: `x = x.clone()` before the first operation in place, or use the operation that makes "
                "a new tensor (`x = x + y` for `x += y`, `x.add(y)` for `x.add_(y)`)."
            ),
            seen_by="flight",
        )


def _where_it_lies(batch: AliasedBatch, held: str) -> str:
    sample = "a batch" if batch.sample is None else f"sample {batch.sample}"
    return f"{sample} was handed out at address {batch.address:#x}, {batch.bytes} bytes inside {held}"


def _what_changed(batch: AliasedBatch) -> str:
    parts = []
    before, after = batch.value_before, batch.value_after
    if before is not None and after is not None:
        digits = 6 if _plain(before, 6) != _plain(after, 6) else 17
        was, became = _plain(before, digits), _plain(after, digits)
        parts.append(f"the first number there that changed was {was} and became {became}")
    first, last = batch.version_before, batch.version_after
    if first is not None and last is not None and last > first:
        parts.append(f"torch's own count of writes to it went from {first} to {last}")
    return "; ".join(parts) or "its bytes were others when the next batch was asked for"


def _plain(number: Number, digits: int) -> str:
    return f"{number:.{digits}g}" if isinstance(number, float) else str(number)


def _came_again(batch: AliasedBatch) -> str:
    if not batch.again:
        return "nothing that was written to has come again in a later pass so far: what one would be given is not known"
    came = f"{batch.again} times a later pass was given what was written to exactly as it had been left"
    if batch.harm:
        return f"{came}; {batch.rewritten} times it was changed once more"
    return f"{came}; it was not changed further then"


def _no_copy(about: LoaderReport[AliasedBatch]) -> list[str]:
    alone = about.settings.loader and about.settings.batch_size is None  # else its settings are not known
    return ["batch_size=None: samples are handed out one by one, without the copy that batching makes"] if alone else []


RULE = Rule("batch-aliases-dataset", "data", decide, explains=frozenset(("no-better-than-constant",)), gathers=True)
