"""empty-loader: the loader gives no batch at all.

What it sees
    A pass over a loader ends before its first batch, from the first pass on, and not one training step was made.

Why it matters
    The loop over it has nothing to do: a script that counts epochs finishes at once without having trained, one that
    counts steps never ends.

Evidence
    The dataset's length, the batch size and `drop_last`; how many passes gave nothing.

Fix
    Fewer samples than a batch and `drop_last=True` is the usual reason; else the filter or the path that left the
    dataset empty.

When it is wrong
    An empty validation loader next to a training that makes steps is information only; it is a warning where the very
    lines that go over it have made steps with another loader.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.loaders import EmptyPass
from unstuck.rules.loader_reports import LoaderReport, latest
from unstuck.rules.rule import Rule


def decide(case: Case) -> Iterable[Finding]:
    for report in latest(case, case.empty_passes):
        state, settings = report.state, report.settings
        if state.full_passes:
            continue
        steps = max((f.step for f in case.flights if f.pid == state.pid), default=0)
        if not steps and case.outcome == "running" and state.empty < 2:
            continue  # a first look at a validation loader; the training may be about to begin
        why, fix = _reason(report)
        passes = "a pass" if state.empty == 1 else f"{state.empty:,} passes"
        made = f"the training is at step {steps:,}" if steps else "no training step was made"
        samples = "an unknown number of" if settings.samples is None else f"{settings.samples:,}"
        yield RULE.finding(
            severity=("warning" if state.trains else "info") if steps else "error",
            confidence=0.97,
            title=f"{report.name} gives no batch: {why}",
            evidence=(
                f"{passes} over it at {report.line} gave no batch, and {made}",
                "the same lines have trained on another loader" if state.trains else "",
                f"its dataset has {samples} samples, batch_size={settings.batch_size}, drop_last={settings.drop_last}",
            ),
            where=report.where(),
            fix=Fix(fix),
            seen_by="flight",
        )


def _reason(report: LoaderReport[EmptyPass]) -> tuple[str, str]:
    samples, size = report.settings.samples, report.settings.batch_size
    if samples == 0:
        return "its dataset is empty", "Look at what fills the dataset: a path, a filter or a split left it empty."
    if samples and size and samples < size and report.settings.drop_last:
        return (
            f"its {samples:,} samples are fewer than a batch of {size:,}, and drop_last discards them",
            f"Use a batch_size of at most {samples:,}, or drop_last=False.",
        )
    what = "dataset's __iter__" if report.state.iterable else "sampler"
    return f"its {what} yields nothing", f"Look at the {what}: it ends before its first sample."


RULE = Rule("empty-loader", "loop", decide)
