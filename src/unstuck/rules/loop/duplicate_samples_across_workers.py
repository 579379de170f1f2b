"""duplicate-samples-across-workers: every worker gives the same samples.

What it sees
    An IterableDataset with several workers: within one pass, samples come again from another worker. Forked processes
    of the script's own, also of a pool, that send the same, message for message, and draw random numbers meanwhile:
    each began with its parent's.

Why it matters
    An epoch has each sample once per worker: it takes that many times as long, and neighbouring batches are copies of
    each other.

Evidence
    How many of the samples compared in this pass had already come from another worker (by their bytes), the number of
    workers, and the stream's own length where it has one; of own processes how many of the first messages are the
    same, and which generator they drew from.

Fix
    Give each worker its own part in `__iter__`, by `torch.utils.data.get_worker_info()`; seed own processes apart.

When it is wrong
    Replication on purpose. Where `__iter__` looks at which worker it is in, it is information only; where each worker
    changes the samples in its own way, they are not the same and nothing is reported.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix, Where
from unstuck.recorder.records.loaders import FirstSent
from unstuck.rules.loader_reports import latest
from unstuck.rules.rule import Rule
from unstuck.text import listed

MIN_REPEATED = 32  # samples that came from another worker before
MIN_REPEATED_SHARE = 0.05  # of the samples compared: shuffled streams meet only gradually
MAX_OWN_SHARE = 0.25  # of the repeats that may be within one worker; more, and the data itself repeats
MIN_DIFFERENT = 6  # messages of one process, of those looked at: what it gives changes


def decide(case: Case) -> Iterable[Finding]:
    yield from _own_processes(case)
    for report in latest(case, case.repeats):
        state, samples = report.state, report.settings.samples
        workers, other = state.workers, state.other
        if not state.iterable or workers < 2 or other < max(MIN_REPEATED, MIN_REPEATED_SHARE * state.rows):
            continue
        if state.own * (workers - 1) > MAX_OWN_SHARE * other:
            continue
        yield RULE.finding(
            severity="info" if report.settings.asks_worker else "warning",
            confidence=0.95,
            title=f"{'both' if workers == 2 else f'all {workers}'} workers give the same samples: each comes {workers} "
            "times per epoch",
            evidence=(
                f"of {state.rows:,} samples compared in the first {state.batches:,} batches of a pass, "
                f"{other:,} had already come from another worker, byte for byte the same",
                f"within one worker {state.own or 'none'} of them came twice: it is not the data that repeats",
                f"the dataset's length is {samples:,} samples; a pass gives about {samples * workers:,}"
                if samples
                else "",
            ),
            where=report.where(report.settings.dataset_site),
            fix=Fix(
                f"In {report.dataset}.__iter__, give each worker its own part: `info = "
                "torch.utils.data.get_worker_info()`, then every info.num_workers-th sample from info.id on."
            ),
            seen_by="flight",
        )


def _own_processes(case: Case) -> Iterable[Finding]:
    """Forked ones that send the same, message for message."""
    alike: dict[object, list[FirstSent]] = defaultdict(list)
    for sent in case.first_sent:
        if sent.drawn and len(set(sent.prints)) >= MIN_DIFFERENT:
            alike[sent.parent, sent.site, tuple(sent.prints)].append(sent)
    same = max(alike.values(), key=len, default=[])
    if len(same) < 2:
        return
    first, drawn = same[0], sorted(set.intersection(*(set(sent.drawn) for sent in same)))
    site = first.site or ("", 0, "")
    which = f"that run {site[2]} " if first.site else ""
    yield RULE.finding(
        severity="warning",
        confidence=0.9,
        title=f"{len(same)} processes {which}send the same data: they draw the same random numbers",
        evidence=(
            f"the first {len(first.prints)} messages of data that they sent are the same, byte for byte "
            f"(pids {', '.join(str(sent.pid) for sent in same[:4])}{' …' if len(same) > 4 else ''}); within one "
            f"process {len(set(first.prints))} of them differ",
            f"each drew from {listed(drawn)} between the first of them and the last",
            "they were forked: each began with a copy of its parent's generators, and none was seeded apart",
        ),
        where=Where(file=site[0], line=site[1], function=site[2], pid=first.pid) if first.site else Where(),
        fix=Fix(f"Seed each process by its own number where {site[2] or 'its work'} begins{_seeding(drawn)}."),
        seen_by="flight",
    )


def _seeding(drawn: list[str]) -> str:
    known = {"np.random": "np.random.seed(seed + number)", "random": "random.seed(seed + number)"}
    calls = [known.get(name, "torch.manual_seed(seed + number)") for name in drawn if name in (*known, "torch")]
    return f": `{'; '.join(calls)}`" if calls else ", or give each a generator of its own"


RULE = Rule("duplicate-samples-across-workers", "loop", decide)
