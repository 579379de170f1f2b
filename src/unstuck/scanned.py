"""`unstuck.scan()`, and what a scan says: the rules of the data, samples that raise or hang, slow ones, duplicates."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from unstuck.model import Case, Finding, Fix, Where
from unstuck.recorder.records import Site
from unstuck.recorder.records.data import LoaderData, SampleErrors, Scanned
from unstuck.rules.diagnose import Diagnosis, diagnose
from unstuck.rules.words import seconds as in_words

GROUPS = 5
NAMED = 8


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
            each.sample: f"{errors.type}: {each.message}"
            for errors in self.about.errors
            for each in errors.first
            if each.sample is not None
        }

    @property
    def hung(self) -> list[int]:
        return [each.sample for each in self.about.hung if each.sample is not None]

    @property
    def slow(self) -> dict[int, float]:
        """Samples far slower than the others, and their seconds."""
        return {index: took for took, index in self.about.slow}

    @property
    def duplicates(self) -> list[list[int]]:
        """Groups of samples with the very same content."""
        return [list(group) for group in self.about.duplicates]

    @property
    def interrupted(self) -> bool:
        return self.about.interrupted

    def __str__(self) -> str:
        return self.text()

    def text(self, *, color: bool = False, width: int = 80, unicode: bool = True) -> str:
        from unstuck.report import terminal
        from unstuck.report.page import Page

        rule = next((finding.rule for finding in self.findings), "")
        shown = terminal.render(self.case, self.diagnosis, color=color, width=width, unicode=unicode, live=False)
        page = Page(color=color, width=width, unicode=unicode)
        if self.partial:
            shown = shown.replace("Nothing found.", "Nothing found in what was seen.", 1)
        page.blank()
        page.line(("Scan", "bold"), indent=2)
        for line in self.notes():
            page.line(line, lead=(f"{page.glyph('bullet')} ", "dim"), indent=4)
        if rule:
            page.blank()
            page.whole(("next: ", "dim"), f"unstuck explain {rule}", indent=2)
        return f"{shown.rstrip()}\n{page}"

    def notes(self) -> list[str]:
        """The pass in a few lines."""
        about = self.about
        bad = (*(each for errors in about.errors for each in errors.first), *about.hung, *about.died)
        cut = {
            f"read by one process: {about.why}": bool(about.why),
            "it was interrupted: the rest was not looked at": about.interrupted,
            "too many samples hang or kill their worker: the rest was not looked at": about.gave_up,
            "the keys of this data set are no numbers: samples are counted in the order they were drawn": any(
                each.key for each in bad
            ),
        }
        return [
            self._passed(),
            _source(about.data, self.case.cwd),
            *(line for line, holds in cut.items() if holds),
            *self._slow_and_same(),
            *(
                f"{count:,} samples could not be read for statistics ({why})"
                for why, count in list(about.odd.items())[:2]
            ),
        ]

    def _slow_and_same(self) -> list[str]:
        about, said = self.about, []
        if about.slow:
            worst = [f"{index} ({in_words(took)})" for took, index in about.slow[:NAMED]]
            usual = in_words(about.median)
            said.append(f"slow samples, where half take less than {usual}: {_listed(worst, len(about.slow))}")
        if about.duplicates:
            groups = [" = ".join(map(str, group[:4])) for group in about.duplicates[:NAMED]]
            count = about.duplicated
            many = f"{count:,} samples are duplicates of others" if count > 1 else "1 sample is a duplicate of another"
            said.append(f"{many}: {'; '.join(groups)}")
        if about.unprinted:
            said.append(f"{about.unprinted:,} samples have parts that are not known, and were not compared")
        return said

    @property
    def partial(self) -> bool:
        """Something was not looked at."""
        about = self.about
        cut = about.limited and (about.stream or about.of != about.done)
        return about.interrupted or about.gave_up or cut

    def _passed(self) -> str:
        about = self.about
        of = f" of {about.of:,}" if about.of is not None and about.of != about.done else ""
        workers = f"{about.workers} worker{'s' if about.workers != 1 else ''}" if about.workers else "no worker"
        return f"{about.done:,}{of} {about.what} in {in_words(about.seconds)} with {workers}"


def _source(data: LoaderData, cwd: str) -> str:
    """Which data set, and whose."""
    said = f"the data set is {data.dataset}{_at(data.dataset_site, cwd)}"
    loader = _at(data.made, cwd)
    return f"{said}, of the {'training ' if data.trains else ''}loader made{loader}" if loader else said


def _at(site: Site | None, cwd: str) -> str:
    if not site:
        return ""
    near = os.path.relpath(site[0], cwd)
    return f" at {site[0] if near.startswith('..') else near}:{site[1]}"


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

    from unstuck.recorder.probes.data import loader_source
    from unstuck.recorder.scan import plan as scan_plan
    from unstuck.recorder.scan import progress as scan_progress
    from unstuck.recorder.scan import report, scan_pass

    began = time.monotonic()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(dataset, torch.utils.data.DataLoader):
        plan = scan_plan.of(dataset, limit, workers or cores)
    else:
        iterable = isinstance(dataset, torch.utils.data.IterableDataset)
        plan = scan_plan.of_dataset(dataset, limit, workers or cores, iterable)
    work = scan_pass.Scan(plan, seconds_per_sample)
    bar = scan_progress.Bar("unstuck: scanning", quiet=not progress, hint="Ctrl-C, or limit=N, ends it")
    work.run(bar)
    bar.clear()
    told = report.record(work, report.about(plan, loader_source.calling(sys._getframe(1))))
    return judge(replace(told, pid=os.getpid(), at=time.monotonic()), sys.argv, time.monotonic() - began)


def judge(about: Scanned, command: Sequence[str], seconds: float) -> Scan:
    """Apply the rules of the data to what a scan told."""
    from unstuck.rules import data

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
    said = diagnose(case, data.RULES)
    raised = [_raising(errors, about) for errors in about.errors[:GROUPS] if errors.first]
    bad = (*_hung(about), *_died(about), *raised)
    return Scan(case, Diagnosis((*bad, *said.findings), said.questions, said.probes_off), about)


# --- samples that do not come ------------------------------------------------------------------------------------


def _raising(errors: SampleErrors, about: Scanned) -> Finding:
    first, samples = errors.first[0], [each.sample for each in errors.first]
    which = f"Sample {first.sample} raises" if errors.count == 1 else f"{errors.count:,} samples raise"
    key = f" (key {first.key})" if first.key else ""
    return Finding(
        rule="sample-raises",
        family="death",
        severity="error",
        confidence=0.99,
        title=f"{which} {errors.type}",
        evidence=(
            f"sample {first.sample}{key}: {errors.type}: {first.message}",
            f"samples {_listed(samples, errors.count)}; {about.failed:,} of {about.done:,} fail in all",
        ),
        where=_where(errors.site, about.pid, first.sample),
        fix=Fix("Repair or drop these samples, or catch the error in the data set and give another sample."),
        seen_by="exit",
    )


def _hung(about: Scanned) -> list[Finding]:
    found = []
    for each in about.hung[:GROUPS]:
        site = each.site
        place = f"{os.path.basename(site[0])}:{site[1]} in {site[2]}" if site else "an unknown place"
        how = "it burns processor time" if each.spins else "it waits"
        found.append(
            Finding(
                rule="sample-spins" if each.spins else "progress-unknown",
                family="hang",
                severity="error",
                confidence=0.9,
                title=f"Sample {each.sample} does not come: after {in_words(each.seconds)} it is still in work",
                evidence=(
                    f"its worker was at {place}; {how}",
                    f"half of the samples take less than {in_words(about.median)}",
                ),
                where=_where(site, about.pid, each.sample),
                fix=Fix("Look at that line with this sample; give what it waits for a time limit, or its loop an end."),
                seen_by="faulthandler" if site else "flight",
            )
        )
    return found


def _died(about: Scanned) -> list[Finding]:
    return [
        Finding(
            rule="native-crash" if (each.exitcode or 0) < 0 else "uncaught-exception",
            family="death",
            severity="error",
            confidence=0.9,
            title=f"Sample {each.sample} kills its worker (exit code {each.exitcode})",
            evidence=(f"the worker ended with exit code {each.exitcode} while sample {each.sample} was in work",),
            where=_where(None, about.pid, each.sample),
            fix=Fix("Fetch this sample alone with `python -X faulthandler` to see where it crashes."),
            seen_by="exit",
        )
        for each in about.died[:GROUPS]
    ]


def _where(site: Site | None, pid: int, sample: int | None) -> Where:
    file, line, function = site or (None, None, None)
    return Where(file=file, line=line, function=function, pid=pid, sample=sample)


def _listed(names: Sequence[Any], of: int) -> str:
    rest = of - min(len(names), NAMED)
    shown = ", ".join(map(str, names[:NAMED]))
    return f"{shown} and {rest:,} more" if rest > 0 else shown
