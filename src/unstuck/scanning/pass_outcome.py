"""What a pass over a dataset found: slow samples and duplicates, fetched once more before they are named, and the
record for the rules."""

from __future__ import annotations

import sys
from dataclasses import replace

from ..recorder import objects
from ..recorder.probes.data import loader_source, statistics_report
from ..recorder.records.data import LoaderData, SampleErrors, Scanned
from .sample_worker import MOST_NAMED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from ..recorder.records import Site
    from ..recorder.records.data import BadSample
    from .full_pass import FullPass
    from .plan import Plan
    from .sample_worker import Seen

    Bad = TypeVar("Bad", bound=BadSample)

SLOW_FETCHED = 16  # slow samples that are fetched again,
GROUPS_FETCHED = 32  # and groups of duplicates of which two are
MOST_DUPLICATES = 4000  # that are put in groups
SLOW_SECONDS, SLOW_TIMES = 0.2, 30  # a slow sample takes this long, and so many times what half of the samples take


class SecondFetch:
    """A sample is slow if it is slow twice: the first one of a worker opens files and imports. Two are duplicates if
    they are the same twice: where samples are random, they may be the same once by chance."""

    def __init__(self, plan: Plan, seen: Seen) -> None:
        self._plan, self._seen = plan, seen
        self.began = False
        self._duplicated = 0
        self._groups: list[list[int]] = []
        self._prints: dict[int, int] = {}  # of the samples in the groups, the first time
        self._took: dict[int, float] = {}
        self._prints_now: dict[int, int] = {}

    def wanted(self) -> list[int]:
        """Positions to fetch again."""
        self.began = True
        self._find()
        checked = self._groups[:: max(1, len(self._groups) // GROUPS_FETCHED)][:GROUPS_FETCHED]
        slow = [position for _, position in self._slow_once()]
        return list(dict.fromkeys([*slow[:SLOW_FETCHED], *(position for group in checked for position in group[:2])]))

    def came(self, fetched: list[tuple[int, float, int]]) -> None:
        for position, took, fingerprint in fetched:
            self._took[position], self._prints_now[position] = took, fingerprint

    def _slow_once(self) -> list[tuple[float, int]]:
        self._limit = max(SLOW_SECONDS, SLOW_TIMES * self._seen.median())
        return [(took, position) for took, position in self._seen.slow if took > self._limit]

    def slow(self) -> list[tuple[float, int]]:
        """Seconds and positions of those that are slow twice. A stream cannot be fetched again."""
        once = self._slow_once()
        if self._plan.keys is None:
            return once
        twice = [(took, position) for took, position in once if self._took.get(position, 0.0) > self._limit]
        return [(min(took, self._took[position]), position) for took, position in twice]

    def duplicates(self) -> tuple[list[list[int]], int]:
        """Groups of samples with the very same content, and how many of them are too many."""
        if self._plan.keys is None:
            self._find()
            return self._groups, self._duplicated
        known = [position for position in self._prints_now if position in self._prints]
        changed = {position for position in known if self._prints_now[position] != self._prints[position]}
        if not changed:
            return (self._groups, self._duplicated) if known else ([], 0)
        sure = [[each for each in group if each in self._prints_now and each not in changed] for group in self._groups]
        sure = [group for group in sure if len(group) > 1]
        return sure, sum(len(group) - 1 for group in sure)

    def _find(self) -> None:
        """Samples with one print, in groups."""
        torch, seen = sys.modules["torch"], self._seen
        if not len(seen.prints):
            return
        prints = torch.frombuffer(seen.prints, dtype=torch.int64)
        positions = torch.frombuffer(seen.positions, dtype=torch.int64)
        order = torch.argsort(prints)
        ordered = prints[order]
        twins = torch.nonzero(ordered[1:] == ordered[:-1]).flatten()
        self._duplicated = int(twins.numel())
        groups: dict[int, set[int]] = {}
        for place in twins[:MOST_DUPLICATES].tolist():
            pair = (int(positions[order[place]]), int(positions[order[place + 1]]))
            groups.setdefault(int(ordered[place]), set()).update(pair)
        self._groups = sorted(sorted(group) for group in groups.values())
        self._prints = {position: key for key, group in groups.items() for position in group}


def describe(plan: Plan, site: Site | None, made: Site | None = None, sampler: str = "") -> LoaderData:
    """Whose data it is."""
    source = loader_source.source(plan.dataset)
    methods = ("__iter__",) if plan.keys is None else ("__getitem__", "__getitems__")
    return LoaderData(
        loader=0,
        site=site,
        made=made,
        dataset=objects.class_name(type(source)),
        dataset_site=loader_source.written(source, *methods),
        samples=plan.whole,
        sampler=sampler,
    )


def record(scan: FullPass, whose: LoaderData, trains: bool = False) -> Scanned:
    plan, seen = scan.plan, scan.seen
    groups, duplicated = scan.again.duplicates() if not scan.interrupted else ([], 0)
    for part in seen.gathered.parts.values():
        part.entropies = [0.0, 0.0, 0.0]  # the order is ours, not that of the training's batches
    with sys.modules["torch"].no_grad():
        data = statistics_report.filled(whose, seen.gathered, trains)
    return Scanned(
        data=data if plan.batches else replace(data, rows=seen.samples),
        done=scan.done(),
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
        hung=[_numbered(bad, plan) for bad in scan.hung],
        died=[_numbered(bad, plan) for bad in scan.died],
        median=seen.median(),
        slow=[(round(took, 3), plan.number(position)) for took, position in scan.again.slow()],
        duplicates=[[plan.number(position) for position in group] for group in groups[:MOST_NAMED]],
        duplicated=duplicated,
        unprinted=seen.unprinted,
        odd=seen.odd,
    )


def _errors(scan: FullPass) -> list[SampleErrors]:
    by_first = sorted(scan.seen.errors.items(), key=lambda pair: pair[1].first[0].sample or 0)
    return [
        SampleErrors(
            type=kind, site=site, count=errors.count, first=[_numbered(bad, scan.plan) for bad in errors.first]
        )
        for (kind, site), errors in by_first
    ]


def _numbered(bad: Bad, plan: Plan) -> Bad:
    """With its number in place of its position among those that were read."""
    position = bad.sample
    if position is None:
        return bad
    key = repr(plan.keys[position])[:80] if plan.keys is not None and not plan.numbered else ""
    return replace(bad, sample=plan.number(position), key=key)
