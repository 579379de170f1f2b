"""How long a training waits for its batches, and what the processes that make them were seen to do meanwhile."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from unstuck.model import Case, HotLine, Strain, Where
from unstuck.recorder.records.loaders import DataWait, LoaderSettings
from unstuck.rules.loader_reports import LoaderReport, latest
from unstuck.text import spot

MIN_LOST_SHARE = 0.1  # of the time: from here on a loss is a warning
MIN_LOST_SECONDS = 5.0  # less is not worth reporting
MIN_BATCHES = 4  # waited for: one slow batch proves nothing
MIN_EPOCH_STARTS = 3
SHARED_MACHINE_CORES = 0.25  # kept busy by others
MIN_STOLEN_SHARE = 0.15  # of the work on batches, lost to others
IDLE_BELOW = 0.5  # share of the snapshots in which workers make a batch: below, they are not what is waited for
CHEAP_SAMPLE_SECONDS = 60e-6  # below, a sample cannot be made any cheaper
MIN_SNAPSHOTS_TOGETHER = 10  # in which two or more workers make a batch
MIN_ALONE_SHARE = 0.85  # of these: at most one worker is not waiting for the lock
MIN_BLOCKED_SHARE = 0.25  # of the snapshots in which a worker waits for the lock, on average
MIN_HOT_SHARE = 0.15  # of the samples, that a line must have to be named as the cause
MIN_COMPUTING_SHARE = 0.3  # of the time to make a batch: below, cores are not what it needs
MAX_WORKERS = 16  # recommended unseen
MAX_GAIN = 20.0  # beyond this the number says no more than that next to nothing is left

DOES = {
    "": "it computes there",
    "running": "it computes there",
    "sleep": "it sleeps there",
    "file": "it waits for a disk there",
    "socket": "it waits for another process or the network there",
    "lock": "it waits for a lock or other threads there",
    "shared-lock": "it waits for a lock that processes share there",
    "file-lock": "it waits for a file lock there",
}


@dataclass(frozen=True)
class LoaderWait:
    """One loader that the training waits for."""

    report: LoaderReport[DataWait]
    strain: Strain  # without snapshots if nobody watched its makers
    fetch_seconds: float  # that a worker needs for a batch, on average; 0: not known

    @property
    def state(self) -> DataWait:
        return self.report.state

    @property
    def settings(self) -> LoaderSettings:
        return self.report.settings

    @property
    def workers(self) -> int:
        return self.state.workers

    @property
    def watched(self) -> bool:
        return self.strain.looks > 0

    # --- what is lost ----------------------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """Since the first batch."""
        return max(1e-9, self.state.seconds)

    @property
    def share(self) -> float:
        """Of these seconds: waited for batches, apart from the first of each epoch."""
        return min(1.0, self.state.waited / self.seconds)

    @property
    def wait_per_batch(self) -> float:
        return self.state.waited / max(1, self.state.drawn)

    @property
    def period(self) -> float:
        """Seconds from batch to batch, within an epoch."""
        return max(1e-9, (self.seconds - self.state.starting) / max(1, self.state.drawn))

    @property
    def step_seconds(self) -> float:
        """Of the period: not waited for data."""
        return max(0.0, self.period - self.wait_per_batch)

    @property
    def making(self) -> float:
        """Seconds that one process needs to make a batch."""
        if self.workers and self.fetch_seconds:
            return self.fetch_seconds
        if not self.watched or not self.workers:
            return self.wait_per_batch
        return self.busy * max(1, len(self.strain.fetchers)) * self.period

    @property
    def lost(self) -> float:
        """Seconds; the first batch of all had to be made too: that much of the wait for it counts."""
        return self.state.waited + min(self.state.first_wait, self.making)

    @property
    def starves(self) -> bool:
        enough = self.lost >= MIN_LOST_SECONDS and self.state.drawn >= MIN_BATCHES and self.share >= MIN_LOST_SHARE
        # Without the longest wait it must still hold: a single late batch is no pace.
        rest = self.state.waited - self.state.longest
        return enough and rest >= self.state.longest and rest >= MIN_LOST_SHARE * (self.seconds - self.state.longest)

    @property
    def restart_seconds(self) -> float:
        """Lost to starting workers that could have stayed alive."""
        state = self.state
        persistent = self.settings.persistent_workers and state.loaders <= 2
        if not self.workers or persistent or state.starts < MIN_EPOCH_STARTS:
            return 0.0
        lost = max(0.0, state.starting - state.starts * self.fetch_seconds)
        return lost * (1 - max(self.stolen, self.stolen_from_training))  # with others everything takes longer

    # --- why -------------------------------------------------------------------------------------------------

    @property
    def busy(self) -> float:
        """Share of the snapshots in which a worker makes a batch, on average."""
        return mean(fetcher.busy for fetcher in self.strain.fetchers)

    @property
    def idle_workers(self) -> bool:
        """It waits although its workers idle: handing batches over takes the time, not making them."""
        return self.workers > 0 and self.watched and self.busy < IDLE_BELOW and self.strain.drawing is None

    @property
    def takes_turns(self) -> bool:
        """Its workers wait for each other at a lock: in most snapshots only one of them works."""
        strain = self.strain
        if len(strain.fetchers) < 2 or strain.together < MIN_SNAPSHOTS_TOGETHER:
            return False
        blocked = mean(fetcher.blocked for fetcher in strain.fetchers)
        return blocked >= MIN_BLOCKED_SHARE and strain.alone >= MIN_ALONE_SHARE * strain.together

    @property
    def hot(self) -> HotLine | None:
        """The line in which most of the time is spent."""
        line = self.strain.drawing or self.strain.hot
        return line if line is not None and line.share >= MIN_HOT_SHARE else None

    @property
    def mostly_waits(self) -> bool:
        """The makers of batches sleep, or wait for something other than a core."""
        line = self.strain.hot
        return line is not None and line.waiting not in ("", "running") and line.share >= 0.5

    @property
    def cheap_samples(self) -> bool:
        """What takes time is iterating them one by one."""
        return self.making / max(1, self.settings.batch_size or 1) < CHEAP_SAMPLE_SECONDS

    @property
    def multiplies(self) -> bool:
        """A stream that does not check which worker it is in: each worker would give all of it."""
        return self.settings.iterable and not self.settings.splits

    @property
    def stolen(self) -> float:
        """Share of the work on batches that processes outside this run took away."""
        if self.strain.others < SHARED_MACHINE_CORES:
            return 0.0
        fetchers = self.strain.fetchers
        lasted = sum(max(f.busy, f.cpu + f.delayed) for f in fetchers)
        return sum(f.delayed for f in fetchers) / max(lasted, 1e-9) * _share_of_others(self.strain)

    @property
    def stolen_from_training(self) -> float:
        """Share of what the training process does, such as starting workers, that others took away."""
        strain = self.strain
        if strain.others < SHARED_MACHINE_CORES:
            return 0.0
        ran = strain.cpu if strain.training is None else strain.training
        return strain.delayed / max(strain.delayed + ran, 1e-9) * _share_of_others(strain)

    @property
    def busy_machine(self) -> bool:
        """It waits because others use the machine: without them the wait would not be worth reporting."""
        if self.idle_workers and self.strain.others >= SHARED_MACHINE_CORES and not self.mostly_waits:
            return True  # the batches are made in time, but nobody gets to run
        if self.stolen < MIN_STOLEN_SHARE:
            return False
        if self.lost * (1 - self.stolen) < MIN_LOST_SECONDS:
            return True
        making = self.making * (1 - self.stolen)
        delay = self.strain.delayed * self.period * _share_of_others(self.strain)
        step = max(0.0, self.step_seconds - delay)
        wait = max(0.0, making / self.workers - step) if self.workers else making
        return wait < MIN_LOST_SHARE * (wait + step)

    # --- what would help -------------------------------------------------------------------------------------

    def gain(self, making: float, workers: int | None = None) -> float:
        """How many times as fast it would be if a batch took so long to make."""
        workers = self.workers if workers is None else workers
        period = max(making / workers, self.step_seconds) if workers else making + self.step_seconds
        return self.period / max(period, 1e-9)

    @property
    def better_workers(self) -> int:
        """Workers that would keep up, as far as there are idle cores for them."""
        strain = self.strain
        if not self.watched or self.multiplies:
            return 0
        needed = math.ceil(self.making / max(self.step_seconds, self.making / MAX_WORKERS))
        if not self.needs_cores:
            return min(needed, MAX_WORKERS)
        free = strain.cores - strain.others - min(1.0, self.step_seconds / self.period)
        return max(0, min(needed, int(free / self._cores_for_one)))

    @property
    def needs_cores(self) -> bool:
        """To make batches: else they wait more than they compute."""
        return self._cores_for_one >= MIN_COMPUTING_SHARE

    @property
    def _cores_for_one(self) -> float:
        """Cores that one process keeps busy while it makes a batch, where it need not wait for a core."""
        fetchers = self.strain.fetchers
        makers = max(1e-9, sum(f.busy for f in fetchers))
        unhindered = max(0.1 * makers, sum(f.busy - f.delayed / max(1, f.threads) for f in fetchers))
        load = sum(f.cpu for f in fetchers) / unhindered
        if not self.workers:  # the process trains too, with all its threads
            load = 0.0 if self.mostly_waits else min(1.0, load)
        return load + self._program_cores / makers

    @property
    def _program_cores(self) -> float:
        """Cores that programs started by the dataset keep busy: more workers would start more of them."""
        strain = self.strain
        if strain.training is None:
            return 0.0
        known = sum(f.cpu for f in strain.fetchers) + (strain.training if self.workers else 0.0)
        return max(0.0, strain.cpu - known)

    # --- in words --------------------------------------------------------------------------------------------

    @property
    def lost_text(self) -> str:
        return (
            f"it waited {self.state.waited:.1f} s of {self.seconds:.1f} s ({self.share:.0%}) for {self.state.drawn:,} "
            f"batches of {self.report.name}, the first of each epoch not counted"
        )

    @property
    def workers_text(self) -> str:
        return "one worker" if self.workers == 1 else f"{self.workers} workers"

    def where(self, line: HotLine | None = None) -> Where:
        """The line, or where the dataset makes a sample."""
        if line is None:
            return self.report.where(self.settings.dataset_site)
        return Where(line.file, line.line, line.function, pid=self.state.pid, step=self.state.step)


def loader_waits(case: Case) -> list[LoaderWait]:
    """Training loaders that lose time, the worst first. While it runs, only those whose makers were watched."""
    waits = []
    for report in latest(case, case.data_waits):
        loader = (report.state.pid, report.state.number)
        strain = _last_telling(case, report.state.pid)
        if report.state.trains and (strain is not None or case.outcome != "running"):
            pids = {pid for each in case.workers_started if (each.pid, each.number) == loader for pid in each.pids}
            paces = [f.paces["fetch"] for f in case.flights if f.pid in pids and "fetch" in f.paces]
            fetch_seconds = sum(pace.total for pace in paces) / max(1, sum(pace.count for pace in paces))
            waits.append(LoaderWait(report, strain or Strain(report.state.pid), fetch_seconds))
    return sorted(waits, key=lambda wait: -wait.state.waited - wait.state.starting)


def starving(case: Case) -> LoaderWait | None:
    """The loader that is waited for most, if that is worth reporting. Several ranks say the same: one is enough."""
    return next((wait for wait in loader_waits(case) if wait.starves), None)


def _last_telling(case: Case, pid: int) -> Strain | None:
    """The latest watch over a training, unless hardly any batch was made during it."""
    strains = [strain for strain in case.strains if strain.pid == pid]
    effort = [strain.looks * sum(f.busy for f in strain.fetchers) for strain in strains]
    pairs = reversed(list(zip(strains, effort, strict=True)))
    return next((strain for strain, done in pairs if 2 * done >= max(effort)), None)


def _share_of_others(strain: Strain) -> float:
    """Of the work on the cores: not this run's."""
    return strain.others / max(1e-9, strain.others + strain.cpu)


def crowded(strain: Strain) -> bool:
    """The cores are full, and it is this run that fills them."""
    if strain.others >= max(SHARED_MACHINE_CORES, 0.2 * strain.cores):
        return False
    return strain.cpu >= 0.8 * (strain.cores - strain.others) and late(strain) >= 0.3


def late(strain: Strain) -> float:
    """Share of the time in which the workers' threads are ready to run that they have no core."""
    delayed = sum(f.delayed for f in strain.fetchers)
    return delayed / max(1e-9, sum(f.cpu for f in strain.fetchers) + delayed)


def mean(values: Iterable[float]) -> float:
    known = list(values)
    return sum(known) / len(known) if known else 0.0


def line_text(line: HotLine, whose: str = "the processes that make batches") -> str:
    """The line, its share and what it does, as evidence."""
    code = f" (`{line.code[:80]}`)" if line.code else ""
    at = spot(line.file, line.line, line.function)
    does = DOES.get(line.waiting, "it waits there")
    return f"{line.share:.0%} of {line.samples:,} stack samples of {whose} were at {at}{code}; {does}"


def times(gain: float) -> str:
    return f"{gain:.1f}×" if gain < MAX_GAIN else f"more than {MAX_GAIN:.0f}×"


def cores_text(strain: Strain) -> str:
    if not strain.looks:
        return ""
    others = f", other processes {strain.others:.1f}" if strain.others >= SHARED_MACHINE_CORES else ""
    return f"of {strain.cores:.3g} cores that the run may use, it kept {strain.cpu:.1f} busy{others}"
