"""Samples that a scan could not read: what rules say of those that raise, hang or kill their worker."""

from __future__ import annotations

from collections.abc import Iterator

from unstuck import text
from unstuck.model import Case, Finding, Fix, Where
from unstuck.recorder.records import Site
from unstuck.recorder.records.data import Scanned
from unstuck.rules.rule import Rule

SHOWN = 5  # findings of one kind


def raising(rule: Rule, case: Case) -> Iterator[Finding]:
    for scan in case.scans:
        for errors in scan.errors[:SHOWN]:
            if not errors.first:
                continue
            first, samples = errors.first[0], [bad.sample for bad in errors.first]
            which = f"Sample {first.sample} raises" if errors.count == 1 else f"{errors.count:,} samples raise"
            key = f" (key {first.key})" if first.key else ""
            yield rule.finding(
                severity="error",
                confidence=0.99,
                title=f"{which} {errors.type}",
                evidence=(
                    f"sample {first.sample}{key}: {errors.type}: {first.message}",
                    f"samples {text.listed(samples, errors.count)}; {scan.failed:,} of {scan.done:,} raise in all",
                ),
                where=_where(scan, errors.site, first.sample),
                fix=Fix("Repair or drop these samples, or catch the error in the dataset and return another sample."),
                seen_by="exit",
            )


def hanging(rule: Rule, case: Case, *, spins: bool) -> Iterator[Finding]:
    """`spins`: those that compute; else those that wait."""
    for scan in case.scans:
        for bad in [bad for bad in scan.hung if bad.spins == spins][:SHOWN]:
            spot = text.spot(*bad.site) if bad.site else "an unknown line"
            yield rule.finding(
                severity="error",
                confidence=0.9,
                title=f"Sample {bad.sample} hangs: it was not ready after {text.seconds(bad.seconds)}",
                evidence=(
                    f"its worker was at {spot}; it {'burns processor time' if spins else 'waits'}",
                    f"half of the samples take less than {text.seconds(scan.median)}",
                ),
                where=_where(scan, bad.site, bad.sample),
                fix=Fix("Run that line with this sample; give the wait a timeout, or the loop an end."),
                seen_by="faulthandler" if bad.site else "flight",
            )


def killing(rule: Rule, case: Case, *, by_signal: bool) -> Iterator[Finding]:
    """Samples whose worker died: of a signal, or with an exit code."""
    for scan in case.scans:
        dead = {bad.sample: bad for bad in reversed(scan.died) if ((bad.exitcode or 0) < 0) == by_signal}
        for sample, bad in sorted(dead.items(), key=lambda pair: pair[0] or 0)[:SHOWN]:
            which, doing = f"Sample {sample} kills its worker", f"while it fetched sample {sample}"
            fix = "Fetch this sample alone with `python -X faulthandler` to see where it crashes."
            if sample is None:
                which, doing = "Workers die as they start", "before it fetched a sample"
                fix = "Call `worker_init_fn` and fetch one sample in a process of its own to see where it ends."
            yield rule.finding(
                severity="error",
                confidence=0.9,
                title=f"{which} (exit code {bad.exitcode})",
                evidence=(f"the worker died with exit code {bad.exitcode} {doing}",),
                where=_where(scan, None, sample),
                fix=Fix(fix),
                seen_by="exit",
            )


def _where(scan: Scanned, site: Site | None, sample: int | None) -> Where:
    file, line, function = site or (None, None, None)
    return Where(file=file, line=line, function=function, pid=scan.pid, sample=sample)
