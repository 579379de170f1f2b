"""What a search found: a table of all that was measured, the choice, and what it brings. Plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .setting_search import CLEARLY
from .worker_settings import DEFAULT_PREFETCH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .race import Candidate
    from .setting_search import Search

WITHOUT_WORKERS = {"multiprocessing_context": None, "timeout": 0}  # torch accepts nothing else without workers


@dataclass(frozen=True)
class Row:
    """One candidate."""

    name: str
    settings: dict[str, Any]
    """Arguments of DataLoader."""
    samples_per_second: float
    low: float
    high: float
    """95 % interval."""
    relative: float | None
    """To the present settings; None if one of the two could not be measured."""
    start_up: float
    """Seconds to the first batch."""
    error: str = ""
    """Why it could not be measured."""
    present: bool = False
    chosen: bool = False


@dataclass(frozen=True)
class Training:
    """A step of the training, as it is now and as it would be; seconds a batch."""

    compute: float
    wait_now: float
    wait_then: float
    speedup: float
    limited: bool
    """Data would still limit it."""


@dataclass(frozen=True)
class Tuned:
    """The result of `unstuck.tune`. `DataLoader(..., **tuned.settings)` is the loader that was chosen."""

    settings: dict[str, Any]
    """Arguments of DataLoader, as chosen."""
    changes: dict[str, Any]
    """Those of them that differ from the present ones; empty if these are to be kept."""
    gain: float
    """Samples a second of the loader alone, chosen to present."""
    keep: bool
    why: str
    """In one sentence."""
    table: tuple[Row, ...]
    training: Training | None = None
    threads: int = 1
    """Intra-op threads to set in each worker; 1 is what torch does by itself."""
    seconds: float = 0.0
    """How long the search took."""
    interrupted: bool = False
    notes: tuple[str, ...] = ()
    """What must be known about it, in sentences."""


def outcome(search: Search, keeps: str = "") -> Tuned:
    """What can be said by now; sensible also in the middle of a search. `keeps` is where the dataset keeps the samples
    it has read: then what was measured is a first pass, which says nothing about a whole training."""
    present, best = search.present, search.best
    known = bool(present.slices and not present.error)
    keep, why = _verdict(search, known)
    chosen = present if keep else best
    given, before = _given(chosen, present), present.settings.arguments()
    measured = [candidate for candidate in search.candidates.values() if candidate.slices or candidate.error]
    return Tuned(
        settings=given,
        changes=_changes(before, given),
        gain=_gain(search, chosen) if known and chosen.rate else 1.0,
        keep=keep,
        why=why,
        table=tuple(_row(candidate, search, chosen, known) for candidate in measured),
        training=_training(search, chosen) if known and chosen.rate and not keeps else None,
        threads=chosen.settings.threads,
        seconds=round(search.elapsed, 3),
        interrupted=search.interrupted,
        notes=tuple(_notes(search, chosen, keeps)),
    )


def _notes(search: Search, chosen: Candidate, keeps: str) -> Iterator[str]:
    limits, present = search.limits, search.present.settings
    yield from filter(None, (search.barred, limits.undivided))
    if chosen.settings.num_workers and not chosen.settings.persistent_workers and limits.not_persistent:
        yield limits.not_persistent
    if chosen.settings.persistent_workers and not present.persistent_workers:
        yield (
            "Persistent workers keep the dataset as it is when they start: they do not see what the script sets in it "
            "between passes."
        )
    if keeps:
        yield (
            f"The dataset keeps what it has read ({keeps}): only a first pass was measured, later ones may need no "
            "reading, and nothing is said about the whole training. Each worker keeps its own, for one pass unless "
            "workers are persistent."
        )
    if search.cut_short and not search.interrupted:
        yield f"The time ({search.seconds:g} s) was over before all was tried: more of it may find something better."


def _verdict(search: Search, known: bool) -> tuple[bool, str]:
    """Keep the present settings? And why."""
    present, best = search.present, search.best
    if not known:
        if best.error or not best.slices:
            return True, "Nothing could be measured." if best.error else "Nothing was measured yet."
        if search.limits.no_workers:
            return False, "The present settings were not measured."
        return False, f"The present settings fail ({present.error})."
    if best is present:
        if search.little_to_gain():
            return True, "Data do not limit the training: a faster loader would bring little or nothing."
        return True, _why_not_the_fastest(search)
    if search.last is not None and search.last.ratios:
        gain, clear = search.last.ratio - 1, search.last.is_better()
    else:  # in the middle of the search
        gain = search.worth.score(best) / search.worth.score(present) - 1
        clear = search.worth.scores(best)[0] > search.worth.scores(present)[1]
    if gain < CLEARLY or not clear:
        return True, f"The best of the others ({best.settings.words()}) is not clearly better."
    if best.settings.num_workers > search.limits.cores:
        return False, f"More workers than the {search.limits.cores} cores help here (torch will warn about them)."
    return False, ""


def _why_not_the_fastest(search: Search) -> str:
    """The table has a faster loader where its workers cost the training more than they bring: say so."""
    present, fastest = search.present, max(search.candidates.values(), key=lambda candidate: candidate.rate)
    ratio = fastest.rate / present.rate
    if ratio < 1 + CLEARLY:
        return "Nothing that was measured is better."
    less = "the start of its workers at each pass" + (
        " and the cores that the training itself needs" if search.step else ""
    )
    return (
        f"The loader with {fastest.settings.words()} gives {ratio:.2f} times the samples per second, but with {less} "
        "counted in, the training is no faster."
    )


def _given(chosen: Candidate, present: Candidate) -> dict[str, Any]:
    """Arguments for DataLoader; what the present ones say about workers is taken back where there are none."""
    given = chosen.settings.arguments()
    lost = [name for name in present.settings.arguments() if name not in given]
    return {**given, **{name: WITHOUT_WORKERS[name] for name in lost}}


def _changes(before: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """What must be written differently; not what torch takes by itself once there are workers."""
    changed = {name: value for name, value in given.items() if before.get(name) != value}
    if before["prefetch_factor"] is None and given["prefetch_factor"] == DEFAULT_PREFETCH:
        del changed["prefetch_factor"]
    return changed


def _gain(search: Search, chosen: Candidate) -> float:
    if chosen is search.present:
        return 1.0
    if search.last is not None and search.last.rates:
        return search.last.gain
    return chosen.rate / search.present.rate


def _row(candidate: Candidate, search: Search, chosen: Candidate, known: bool) -> Row:
    low, high = candidate.interval()
    return Row(
        name=candidate.settings.words(),
        settings=candidate.settings.arguments(),
        samples_per_second=candidate.rate,
        low=low,
        high=high,
        relative=candidate.rate / search.present.rate if known and candidate.rate else None,
        start_up=candidate.start_up,
        error=candidate.error,
        present=candidate is search.present,
        chosen=candidate is chosen,
    )


def _training(search: Search, chosen: Candidate) -> Training | None:
    step = search.step
    if step is None:
        return None
    now, then = (step.batch / search.worth.score(candidate) for candidate in (search.present, chosen))
    return Training(
        compute=step.compute,
        wait_now=max(0.0, now - step.compute),
        wait_then=max(0.0, then - step.compute),
        speedup=now / then,
        limited=then > step.compute * 1.05,
    )
