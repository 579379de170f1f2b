"""What came of a scan, as a fact for the rules and for the person."""

from __future__ import annotations

import sys

from .. import user_code
from ..probes.data import batch_statistics, statistics_report
from .seen import NAMED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .plan import Plan
    from .scan_pass import Scan


def about(plan: Plan) -> dict[str, Any]:
    """Whose data it is."""
    source = batch_statistics.source(plan.dataset)
    names = ("__iter__",) if plan.keys is None else ("__getitem__", "__getitems__")
    giving = next((found for name in names if (found := getattr(type(source), name, None)) is not None), None)
    return {
        "dataset": type(source).__qualname__,
        "dataset_site": user_code.code_site(giving),
        "samples": plan.whole,
    }


def plain(scan: Scan) -> dict[str, Any]:
    plan, seen = scan.plan, scan.seen
    duplicates, duplicated = scan.again.same() if not scan.interrupted else ([], 0)
    errors = sorted(seen.errors.values(), key=lambda each: int(each.first[0]["place"]))
    for part in seen.gathered.parts.values():
        part.entropies = [0.0, 0.0, 0.0]  # the order is ours, not that of the training's batches
    with sys.modules["torch"].no_grad():
        told = statistics_report.told(seen.gathered)
    return {
        **told,
        "rows": told["rows"] if plan.batches else seen.samples,
        "scan": {
            "done": seen.samples + seen.failed + len(scan.hung) + sum(each["place"] is not None for each in scan.died),
            "of": plan.whole,
            "what": "batches" if plan.batches else "samples",
            "stream": plan.keys is None,
            "limited": plan.limit is not None,
            "workers": 0 if plan.here else plan.workers,
            "why": plan.why,
            "seconds": round(scan.took, 3),
            "interrupted": scan.interrupted,
            "gave_up": scan.gave_up,
            "failed": seen.failed,
            "raised": [_named(each, plan) for group in errors for each in group.first],
            "raising": [[group.count, _named(group.first[0], plan)["sample"]] for group in errors],
            "hung": [_named(each, plan) for each in scan.hung],
            "died": [_named(each, plan) for each in scan.died],
            "median": seen.median(),
            "slow": [[round(took, 3), plan.number(place)] for took, place in scan.again.slow()],
            "duplicates": [[plan.number(place) for place in group] for group in duplicates[:NAMED]],
            "duplicated": duplicated,
            "unprinted": seen.unprinted,
            "odd": seen.odd,
        },
    }


def _named(each: dict[str, Any], plan: Plan) -> dict[str, Any]:
    place = each["place"]
    rest = {name: value for name, value in each.items() if name != "place"}
    key = repr(plan.keys[place])[:80] if plan.keys is not None and place is not None and not plan.numbered else None
    return {"sample": None if place is None else plan.number(place), "key": key, **rest}
