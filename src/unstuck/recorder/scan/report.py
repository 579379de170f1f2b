"""What came of a scan, as a record for the rules and for the person."""

from __future__ import annotations

import sys
from dataclasses import replace

from .. import objects
from ..probes.data import loader_source, statistics_report
from ..records.data import LoaderData, SampleErrors, Scanned
from .seen import NAMED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from ..records import Site
    from ..records.data import BadSample
    from .plan import Plan
    from .scan_pass import Scan

    B = TypeVar("B", bound=BadSample)

GIVING = ("__getitem__", "__getitems__")


def about(plan: Plan, site: Site | None, made: Site | None = None, sampler: str = "") -> LoaderData:
    """Whose data it is."""
    source = loader_source.source(plan.dataset)
    return LoaderData(
        loader=0,
        site=site,
        made=made,
        dataset=objects.class_name(type(source)),
        dataset_site=loader_source.written(source, *(("__iter__",) if plan.keys is None else GIVING)),
        samples=plan.whole,
        sampler=sampler,
    )


def record(scan: Scan, whose: LoaderData, trains: bool = False) -> Scanned:
    plan, seen = scan.plan, scan.seen
    duplicates, duplicated = scan.again.same() if not scan.interrupted else ([], 0)
    for part in seen.gathered.parts.values():
        part.entropies = [0.0, 0.0, 0.0]  # the order is ours, not that of the training's batches
    with sys.modules["torch"].no_grad():
        data = statistics_report.filled(whose, seen.gathered, trains)
    return Scanned(
        data=data if plan.batches else replace(data, rows=seen.samples),
        done=seen.samples + seen.failed + len(scan.hung) + sum(each.sample is not None for each in scan.died),
        of=plan.whole,
        what="batches" if plan.batches else "samples",
        stream=plan.keys is None,
        limited=plan.limit is not None,
        workers=0 if plan.here else plan.workers,
        why=plan.why,
        seconds=round(scan.took, 3),
        interrupted=scan.interrupted,
        gave_up=scan.gave_up,
        failed=seen.failed,
        errors=_errors(scan),
        hung=[_named(each, plan) for each in scan.hung],
        died=[_named(each, plan) for each in scan.died],
        median=seen.median(),
        slow=[(round(took, 3), plan.number(place)) for took, place in scan.again.slow()],
        duplicates=[[plan.number(place) for place in group] for group in duplicates[:NAMED]],
        duplicated=duplicated,
        unprinted=seen.unprinted,
        odd=seen.odd,
    )


def _errors(scan: Scan) -> list[SampleErrors]:
    found = sorted(scan.seen.errors.items(), key=lambda pair: pair[1].first[0].sample or 0)
    return [
        SampleErrors(type=kind, site=site, count=each.count, first=[_named(one, scan.plan) for one in each.first])
        for (kind, site), each in found
    ]


def _named(bad: B, plan: Plan) -> B:
    """With its number in place of its place among those that were asked for."""
    place = bad.sample
    if place is None:
        return bad
    key = repr(plan.keys[place])[:80] if plan.keys is not None and not plan.numbered else ""
    return replace(bad, sample=plan.number(place), key=key)
