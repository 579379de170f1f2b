"""empty-loader: the loader gives no batch at all.

What it sees
    A pass over a loader ends before its first batch, from the first pass on, and not one training step was made.

Why it matters
    The loop over it has nothing to do: a script that counts epochs is over at once without having trained, one that
    counts steps never ends.

Evidence
    The data set's length, the batch size and `drop_last`; how many passes gave nothing.

Fix
    Fewer samples than a batch and `drop_last=True` is the usual reason; else the filter or the path that made the data
    set empty.

When it is wrong
    An empty validation loader beside a training that makes steps is information only; it is a warning where the very
    lines that go over it have made steps with another loader.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.loaders import EmptyPass
from unstuck.rules.loader_reports import LoaderReport, latest
from unstuck.rules.rule import Rule


def decide(case: Case) -> Iterable[Finding]:
    for about in latest(case, case.empty_passes):
        state = about.state
        if state.full_passes:
            continue
        steps = max((f.step for f in case.flights if f.pid == state.pid), default=0)
        if not steps and case.outcome == "running" and state.empty < 2:
            continue  # a first look at a validation loader; the training may be about to begin
        why, fix = _reason(about)
        passes = "a pass" if state.empty == 1 else f"{state.empty:,} passes"
        yield RULE.finding(
            severity=("warning" if state.trains else "info") if steps else "error",
            confidence=0.97,
            title=f"{about.name} gives no batch{why and ': ' + why}",
            evidence=(
                f"{passes} over it at {about.line} gave no batch, and "
                + ("no training step was made" if not steps else f"the training stands at step {steps:,}"),
                *(("the same lines have trained on another loader",) if state.trains else ()),
                f"its data set has {_samples(about)}, batch_size={about.settings.batch_size}, "
                f"drop_last={about.settings.drop_last}",
            ),
            where=about.where(),
            fix=Fix(fix),
            seen_by="flight",
        )


def _samples(about: LoaderReport[EmptyPass]) -> str:
    samples = about.settings.samples
    return "a length that was not asked for" if samples is None else f"{samples:,} samples"


def _reason(about: LoaderReport[EmptyPass]) -> tuple[str, str]:
    samples, size = about.settings.samples, about.settings.batch_size
    if samples == 0:
        return "its data set is empty", "Look at what fills the data set: a path, a filter or a split left it empty."
    if samples and size and samples < size and about.settings.drop_last:
        return (
            f"its {samples:,} samples are fewer than a batch of {size:,}, and drop_last throws them away",
            f"Use a batch_size of at most {samples:,}, or drop_last=False.",
        )
    what = "data set's __iter__" if about.state.iterable else "sampler"
    return f"its {what} yields nothing", f"Look at the {what}: it ends before its first sample."


RULE = Rule("empty-loader", "loop", decide)
