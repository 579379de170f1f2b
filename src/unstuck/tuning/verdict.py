"""What a search says by now: the choice, what it brings, and what must be known about it."""

from __future__ import annotations

from . import settings
from .outcome import Row, Training, Tuned
from .search import CLEARLY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .candidates import Candidate
    from .search import Search


def found(search: Search, keeps: str = "") -> Tuned:
    """What can be said by now; sensible also in the middle of a search. `keeps` is where the data set keeps the samples
    it has read: then what was measured is a first pass, which says nothing about a whole training."""
    present, best = search.present, search.best
    known = bool(present.slices and not present.error)
    keep, why = _verdict(search, known)
    chosen = present if keep else best
    given, before = _given(chosen, present), present.settings.arguments()
    rate = chosen.figures.rate
    return Tuned(
        settings=given,
        changes=_changes(before, given),
        gain=_gain(search, chosen) if known and rate else 1.0,
        keep=keep,
        why=why,
        table=tuple(
            _row(each, search, chosen, known) for each in search.candidates.values() if each.slices or each.error
        ),
        training=_training(search, chosen) if known and rate and not keeps else None,
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
            "Persistent workers keep the data set as it is when they start: what the script sets in it between passes "
            "they do not see."
        )
    if keeps:
        yield (
            f"The data set keeps what it has read ({keeps}): only a first pass was measured, later ones may need no "
            "reading, and nothing is said about the whole training. Workers keep it each for itself, and for one pass "
            "unless they are persistent."
        )
    if search.cut_short and not search.interrupted:
        yield f"The time ({search.seconds:g} s) was over before all was tried: more of it may find something better."


def _verdict(search: Search, known: bool) -> tuple[bool, str]:
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
        return True, "Nothing that was measured is better."
    if search.last is not None and search.last.ratios:
        gain, clear = search.last.ratio - 1, search.last.is_better()
    else:  # in the middle of the search
        gain = search.worth.score(best) / search.worth.score(present) - 1
        clear = search.worth.scores(best)[0] > search.worth.scores(present)[1]
    if gain < CLEARLY or not clear:
        return True, f"The best of the others ({best.settings.words()}) is not clearly better."
    if best.settings.num_workers > search.limits.cores:
        return False, f"More workers than the {search.limits.cores} cores help here (torch will warn of them)."
    return False, ""


def _given(chosen: Candidate, present: Candidate) -> dict[str, Any]:
    """Arguments for DataLoader; what the present ones say about workers is taken back where there are none."""
    given = chosen.settings.arguments()
    lost = [name for name in present.settings.arguments() if name not in given]
    return {**given, **{name: settings.WITHOUT_WORKERS[name] for name in lost}}


def _changes(before: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """What must be said differently; what torch takes by itself once there are workers need not be said."""
    changed = {name: value for name, value in given.items() if before.get(name) != value}
    if before["prefetch_factor"] is None and given["prefetch_factor"] == settings.DEFAULT_PREFETCH:
        del changed["prefetch_factor"]
    return changed


def _gain(search: Search, chosen: Candidate) -> float:
    if chosen is search.present:
        return 1.0
    if search.last is not None and search.last.rates:
        return search.last.gain
    return chosen.figures.rate / search.present.figures.rate


def _row(candidate: Candidate, search: Search, chosen: Candidate, known: bool) -> Row:
    figures = candidate.figures
    low, high = figures.interval()
    return Row(
        name=candidate.settings.words(search.present.settings.start_method),
        settings=candidate.settings.arguments(),
        samples_per_second=figures.rate,
        low=low,
        high=high,
        relative=figures.rate / search.present.figures.rate if known and figures.rate else None,
        start_up=candidate.start_up,
        error=candidate.error,
        present=candidate is search.present,
        chosen=candidate is chosen,
    )


def _training(search: Search, chosen: Candidate) -> Training | None:
    step = search.step
    if step is None:
        return None
    now, then = (step.batch / search.worth.score(each) for each in (search.present, chosen))
    return Training(
        compute=step.compute,
        wait_now=max(0.0, now - step.compute),
        wait_then=max(0.0, then - step.compute),
        speedup=now / then,
        limited=then > step.compute * 1.05,
    )
