"""What the training measured of its waits for batches, beside what its processes were seen to do meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from unstuck.model import Case, HotLine, Severity, Strain, Where
from unstuck.recorder.records import Site
from unstuck.recorder.records.loaders import DataWait, LoaderSettings
from unstuck.rules.loader_reports import LoaderReport, first_of, latest

COSTLY = 0.1
"""Share of the time from which on a loss is a warning."""
LEAST = 5.0
"""Seconds that must have been lost: less than that is not worth a word."""
ENOUGH = 4
"""Batches that must have been waited for: one slow one proves nothing."""
OTHERS = 0.25
"""Processors that others keep busy, from which on the machine counts as shared."""
STOLEN = 0.15
"""Share of their work that the makers of batches must have been kept from."""
RESTING = 0.5
"""Share of the looks in which workers make a batch, below which they cannot be what is waited for."""
AT_HAND = 60e-6
"""Seconds a sample, below which there is nothing to be made cheaper in it."""
MOST = 20.0
"""Beyond this a gain is no more than "next to nothing is left"."""


@dataclass(frozen=True)
class Waiting:
    """One loader that training goes on from, and what was seen of those who make its batches."""

    about: LoaderReport[DataWait]
    strain: Strain | None
    fetched: float = 0.0
    """Seconds that its workers took for a batch, on average of all; 0: not known."""

    @property
    def state(self) -> DataWait:
        return self.about.state

    @property
    def settings(self) -> LoaderSettings:
        return self.about.settings

    @property
    def pid(self) -> int:
        return self.state.pid

    @property
    def seconds(self) -> float:
        """Since the first batch."""
        return max(1e-9, self.state.seconds)

    @property
    def share(self) -> float:
        """Of the time since the first batch that was waited for batches, but for the first of each pass."""
        return min(1.0, self.state.waited / self.seconds)

    @property
    def starting(self) -> float:
        """Of that time: beginning passes after the first, and waiting for their first batch."""
        return min(1.0, self.state.starting / self.seconds)

    @property
    def workers(self) -> int:
        return self.state.workers

    @property
    def starves(self) -> bool:
        return self.long_enough and self.state.drawn >= ENOUGH and self.share >= COSTLY and self.steady

    @property
    def steady(self) -> bool:
        """It would be worth a word without the one longest wait too, which is not most of it: a single batch that was
        long in coming is no pace, and what was seen meanwhile says nothing of the others."""
        longest = self.state.longest
        rest = self.state.waited - longest
        return rest >= longest and rest >= COSTLY * (self.seconds - longest)

    @property
    def long_enough(self) -> bool:
        """The first batch of all had to be made too: so much of the wait for it counts, the rest is the start."""
        return self.state.waited + min(self.state.first_wait, self.making) >= LEAST

    @property
    def period(self) -> float:
        """Seconds from batch to batch, within a pass."""
        return max(1e-9, (self.seconds - self.state.starting) / max(1, self.state.drawn))

    @property
    def between(self) -> float:
        """Seconds a batch that are not waited for data."""
        return max(0.0, self.period - self.state.waited / max(1, self.state.drawn))

    @property
    def making(self) -> float:
        """Seconds it takes one of them to make a batch."""
        if self.workers and self.fetched:
            return self.fetched
        if self.strain is None or not self.workers:
            return self.state.waited / max(1, self.state.drawn)
        return mean(f.busy for f in self.strain.fetchers) * max(1, len(self.strain.fetchers)) * self.period

    def faster(self, making: float, workers: int | None = None) -> float:
        """How many times as fast it would be if a batch took so long to make."""
        workers = self.workers if workers is None else workers
        period = max(making / workers, self.between) if workers else making + self.between
        return self.period / max(period, 1e-9)

    @property
    def busy(self) -> float:
        return mean(f.busy for f in self.strain.fetchers) if self.strain else 0.0

    @property
    def idle_workers(self) -> bool:
        """It waits although its workers rest: what takes time is handing batches over, not making them."""
        return self.workers > 0 and self.strain is not None and self.busy < RESTING and self.strain.drawing is None

    @property
    def stands(self) -> bool:
        """Those who make batches sleep, or wait for something that is no processor."""
        hot = self.strain.hot if self.strain is not None else None
        return hot is not None and hot.waiting not in ("", "running") and hot.share >= 0.5

    @property
    def helpers(self) -> float:
        """Processors that processes of the run keep busy which neither train nor make batches: programs that the data
        set starts. More workers would start more of them."""
        strain = self.strain
        if strain is None or strain.training is None:
            return 0.0
        known = sum(f.cpu for f in strain.fetchers) + (strain.training if self.workers else 0.0)
        return max(0.0, strain.cpu - known)

    @property
    def who(self) -> str:
        """A script that makes no step is none."""
        return "the training" if self.state.step else "the run"

    @property
    def multiplies(self) -> bool:
        """A stream that does not ask which worker it is in: each worker would give all of it."""
        return self.settings.iterable and not self.settings.splits

    @property
    def sample(self) -> float:
        """Seconds that making a sample takes."""
        return self.making / max(1, self.settings.batch_size or 1)

    @property
    def stolen(self) -> float:
        """Share of their work that the makers of batches were kept from by processes that are not of this run."""
        strain = self.strain
        if strain is None or strain.others < OTHERS:
            return 0.0
        delayed = sum(f.delayed for f in strain.fetchers)
        lasted = sum(max(f.busy, f.cpu + f.delayed) for f in strain.fetchers)
        return delayed / max(lasted, 1e-9) * _theirs(strain)

    @property
    def busy_machine(self) -> bool:
        """It waits because others use the machine: without them the wait would not be worth a word."""
        if self.strain is None:
            return False
        if self.idle_workers and self.strain.others >= OTHERS and not self.stands:
            return True  # they are done in time, but nobody is let run
        if self.stolen < STOLEN:
            return False
        making = self.making * (1 - self.stolen)
        between = max(0.0, self.between - self.strain.delayed * self.period * _theirs(self.strain))
        wait = max(0.0, making / self.workers - between) if self.workers else making
        return wait < COSTLY * (wait + between)

    @property
    def at_hand(self) -> bool:
        """Samples that take next to nothing: what takes time is going through them one by one."""
        return self.sample < AT_HAND

    @property
    def severity(self) -> Severity:
        return "info" if self.busy_machine or self.at_hand else "warning"

    @property
    def lost(self) -> str:
        """The measured loss, as evidence."""
        return (
            f"{self.state.waited:.1f} s of the {self.seconds:.1f} s since the first batch went into waiting for the "
            f"next one ({self.share:.0%}), over {self.state.drawn:,} batches of {self.about.name}; the first of each "
            "pass is not counted"
        )

    def where(self, line: HotLine | None = None) -> Where:
        """The line, or where the dataset makes a sample."""
        if line is None:
            return self.about.where(self.settings.dataset_site)
        return Where(file=line.file, line=line.line, function=line.function, pid=self.pid, step=self.state.step)

    @property
    def loop(self) -> Where:
        """Where the loader is gone through."""
        return self.about.where()


def waits(case: Case) -> list[Waiting]:
    """Loaders of trainings that said they lose time, the worst first. While it runs, only once it was looked why."""
    found = [
        Waiting(about, telling(case, about.state.pid), _fetched(case, about.state))
        for about in latest(case, case.data_waits)
        if about.state.trains
    ]
    known = [each for each in found if each.strain is not None or case.outcome != "running"]
    return sorted(known, key=lambda each: -each.state.waited - each.state.starting)


def _theirs(strain: Strain) -> float:
    """The part of the work on the processors that is not this run's."""
    return strain.others / max(1e-9, strain.others + strain.cpu)


def first_gone_through(loader: LoaderSettings, *sites: Site | None) -> Where:
    """The first of these places that is in the user's code, else where its first pass was begun."""
    return first_of(loader.pid, None, *sites, loader.site)


def telling(case: Case, pid: int) -> Strain | None:
    """The latest time that a training was watched, unless batches were hardly being made then."""
    found = [strain for strain in case.strains if strain.pid == pid]
    effort = [strain.looks * sum(f.busy for f in strain.fetchers) for strain in found]
    return next((s for s, done in reversed(list(zip(found, effort, strict=True))) if 2 * done >= max(effort)), None)


def _fetched(case: Case, state: DataWait) -> float:
    same = (state.pid, state.number)
    pids = {pid for each in case.workers_started if (each.pid, each.number) == same for pid in each.pids}
    paces = [flight.paces["fetch"] for flight in case.flights if flight.pid in pids and "fetch" in flight.paces]
    return sum(pace.total for pace in paces) / max(1, sum(pace.count for pace in paces))


def starving(case: Case) -> Waiting | None:
    """The loader that is waited for most, if that is worth a word. Several ranks say the same: one is enough."""
    return next((each for each in waits(case) if each.starves), None)


def mean(values: Iterable[float]) -> float:
    known = list(values)
    return sum(known) / len(known) if known else 0.0


def spot(line: HotLine) -> str:
    """data.py:31"""
    return f"{os.path.basename(line.file)}:{line.line}"


def times(gain: float) -> str:
    return f"{gain:.1f}×" if gain < MOST else f"more than {MOST:.0f}×"


def machine(strain: Strain) -> str:
    """Who uses the processors, as evidence."""
    others = f", other processes {strain.others:.1f}" if strain.others >= OTHERS else ""
    return f"of {strain.cores:.3g} processors the run may use, it kept {strain.cpu:.1f} busy{others}"
