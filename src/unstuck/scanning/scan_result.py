"""`unstuck.scan()`, and what a scan shows: the findings of the rules, the pass in a few lines, slow samples,
duplicates."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from unstuck import text
from unstuck.model.case import Case
from unstuck.model.finding import Finding
from unstuck.recorder.records import Site
from unstuck.recorder.records.data import Scanned
from unstuck.report.json_report import relative
from unstuck.report.screen import Screen
from unstuck.rules.diagnose import Diagnosis, diagnose

NAMED = 8  # samples that one line names


@dataclass(frozen=True)
class Scan:
    """One pass over a dataset. `print(scan)` shows it."""

    case: Case
    diagnosis: Diagnosis
    about: Scanned
    """Counts of the pass: done, of, failed, errors, hung, died, slow, duplicates …"""

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.diagnosis.findings

    @property
    def samples(self) -> int:
        """Samples gone through."""
        return self.about.done

    @property
    def raised(self) -> dict[int, str]:
        """Samples that raise, and what."""
        return {
            bad.sample: f"{errors.type}: {bad.message}"
            for errors in self.about.errors
            for bad in errors.first
            if bad.sample is not None
        }

    @property
    def hung(self) -> list[int]:
        return [bad.sample for bad in self.about.hung if bad.sample is not None]

    @property
    def slow(self) -> dict[int, float]:
        """Samples far slower than the others, and their seconds."""
        return {sample: took for took, sample in self.about.slow}

    @property
    def duplicates(self) -> list[list[int]]:
        """Groups of samples with the very same content."""
        return [list(group) for group in self.about.duplicates]

    @property
    def interrupted(self) -> bool:
        return self.about.interrupted

    @property
    def partial(self) -> bool:
        """Some samples were not read."""
        about = self.about
        cut = about.limited and (about.stream or about.of != about.done)
        return about.interrupted or about.gave_up or cut

    def __str__(self) -> str:
        return self.text()

    def text(self, screen: Screen | None = None) -> str:
        from unstuck.report import terminal, wording
        from unstuck.report.page import Page

        screen = screen or Screen()
        shown = terminal.render(self.case, self.diagnosis, screen, live=False)
        page = Page(screen)
        if self.partial:
            shown = shown.replace("Nothing found.", "Nothing found in the samples read.", 1)
        page.heading("Scan")
        page.bullets(self.notes())
        page.next_command(f"unstuck explain {self.findings[0].rule}" if self.findings else wording.again(self.case))
        return f"{shown.rstrip()}\n\n{page}"

    def notes(self) -> Iterator[str]:
        """The pass in a few lines."""
        about = self.about
        yield self._passed()
        yield self._source()
        if about.why:
            yield f"read by one process: {about.why}"
        if about.interrupted:
            yield "interrupted: the rest was not read"
        if about.gave_up:
            yield "too many samples hang or kill their worker: the rest was not read"
        if any(bad.key for bad in (*(bad for errors in about.errors for bad in errors.first), *about.hung)):
            yield "the keys of this dataset are not numbers: samples are counted in the order they were drawn"
        if about.slow:
            slow = [f"{sample} ({text.seconds(took)})" for took, sample in about.slow]
            median = text.seconds(about.median)
            yield f"slow samples (half of all take less than {median}): {text.listed(slow)}"
        if about.duplicates:
            groups = "; ".join(" = ".join(map(str, group[:4])) for group in about.duplicates[:NAMED])
            many = about.duplicated > 1
            yield f"{about.duplicated:,} {'samples are duplicates' if many else 'sample is a duplicate'}: {groups}"
        if about.unprinted:
            yield f"{about.unprinted:,} samples were not compared: they have parts of unknown types"
        for why, count in list(about.odd.items())[:2]:
            yield f"{count:,} samples could not be read for statistics ({why})"

    def _passed(self) -> str:
        about = self.about
        of = f" of {about.of:,}" if about.of is not None and about.of != about.done else ""
        workers = f"{about.workers} worker{'s' if about.workers != 1 else ''}" if about.workers else "no worker"
        return f"{about.done:,}{of} {about.what} in {text.seconds(about.seconds)} with {workers}"

    def _source(self) -> str:
        """Which dataset, and whose."""
        data = self.about.data
        made = self._at(data.made)
        loader = f", of the {'training ' if data.trains else ''}loader built{made}" if made else ""
        return f"the dataset is {data.dataset}{self._at(data.dataset_site)}{loader}"

    def _at(self, site: Site | None) -> str:
        return f" at {relative(site[0], self.case.cwd)}:{site[1]}" if site else ""


def scan(
    dataset: Any,
    *,
    limit: int | None = None,
    workers: int | None = None,
    seconds_per_sample: float = 10.0,
    progress: bool = True,
) -> Scan:
    """Go through a dataset (or that of a DataLoader) once, in processes of its own, and say what is odd in it.

    A sample that raises, or takes longer than `seconds_per_sample`, is listed, and the scan goes on. Ctrl-C ends it
    early, with what was seen. Nothing is changed.
    """
    import torch.utils.data

    from unstuck.recorder import cores, user_code
    from unstuck.scanning import pass_outcome, plan
    from unstuck.scanning.full_pass import FullPass
    from unstuck.takeover.bar import Bar, counted
    from unstuck.takeover.interrupts import Attentive, Patience

    began = time.monotonic()
    if isinstance(dataset, torch.utils.data.DataLoader):
        reading = plan.of_loader(dataset, limit, workers or cores.whole())
    else:
        iterable = isinstance(dataset, torch.utils.data.IterableDataset)
        reading = plan.of_dataset(dataset, limit, workers or cores.whole(), iterable)
    patience, bar = Patience(), Bar("unstuck: scanning", quiet=not progress)
    with Attentive(patience):
        work = FullPass(reading, seconds_per_sample, patience)
        work.run(lambda done, of: bar.show(done / of if of else None, counted(done, of, time.monotonic() - began)))
    bar.clear()
    found = pass_outcome.record(work, pass_outcome.describe(reading, user_code.site_of(sys._getframe(1))))
    return judge(found, sys.argv, time.monotonic() - began)


def judge(found: Scanned, command: Sequence[str], seconds: float) -> Scan:
    """Apply the rules to what a scan found."""
    about = replace(found, pid=found.pid or os.getpid(), at=time.monotonic())
    case = Case(
        command=tuple(command),
        cwd=os.getcwd(),
        now=time.monotonic(),
        clock_offset=time.time() - time.monotonic(),
        seconds=seconds,
        outcome="interrupted" if about.interrupted else "finished",
        root=about.pid,
        scans=(about,),
    )
    return Scan(case, diagnose(case), about)
