"""Passes over loaders, and whether what they give repeats: a ledger a loader, facts when something is worth a rule."""

from __future__ import annotations

from itertools import count
from time import monotonic_ns
from weakref import ref

from ... import facts, flight, lengths
from ... import layout as at
from ..pace import data_waits
from . import fingerprints

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

WINDOW = 64  # batches of a pass whose samples are remembered
REMEMBERED = 2048  # samples
SHARE = 200  # fingerprints may take one part in so many of the time,
ALLOWED = 20_000_000  # and so many nanoseconds besides, which go into the first batches
_ledgers: dict[int, Ledger] = {}
_numbers = count()  # a ledger's number is its own for good: a loader's place may be taken by another
_spent = 0
_began = 0


def _nothing() -> None:
    return None


class Ledger:
    """What is kept of one loader."""

    __slots__ = (
        *("number", "length", "workers", "passes", "empty", "full_passes", "short", "steps", "ended", "site", "over"),
        *("seen", "rows", "own", "other", "last", "same", "told_repeats", "iterable", "began", "loader", "loaders"),
        *("opening", "first", "trained", "again"),
        *(
            "waited",
            "longest",
            "drawn",
            "since",
            "until",
            "begun",
            "opened",
            "starting",
            "starts",
            "pickled",
            "pickling",
            "tell_at",
            "told",
        ),
    )

    def __init__(self, number: int) -> None:
        self.number = number
        self.loaders = self.workers = self.opening = self.trained = self.again = 0
        self.first = monotonic_ns()
        self.waited = self.longest = self.drawn = self.since = self.until = self.begun = self.opened = 0
        self.starting = self.starts = self.pickled = self.pickling = self.told = 0
        self.tell_at = data_waits.SUSPECT
        self.length: int | None = None
        self.iterable = False
        self.loader: Callable[[], object] = _nothing
        self.passes = self.empty = self.full_passes = self.short = self.same = self.last = 0
        self.ended = True
        self.site: list[str | int] | None = None
        self.begin(0)

    def begin(self, steps: int) -> None:
        """A pass begins. `same` and `last` go on from pass to pass: next(iter(loader)) begins one a step."""
        self.steps = steps
        self.over = 1
        self.seen: dict[int, int] = {}
        self.rows = self.own = self.other = self.told_repeats = 0
        self.began = monotonic_ns()

    def facts(self) -> dict[str, object]:
        return {
            **{name: getattr(self, name) for name in ("number", "length", "workers", "passes", "empty", "full_passes")},
            **{name: getattr(self, name) for name in ("short", "rows", "own", "other", "same", "iterable", "site")},
            "loaders": self.loaders,
            "opening": self.opening / 1e9,
            "since_first": (monotonic_ns() - self.first) / 1e9,
            "step": flight.steps(),
        }


def ledger_of(loader: Any, site: list[str | int] | None) -> tuple[Ledger, bool]:
    """The loader's ledger, and whether the loader is new. One made anew at the same line carries on the ledger of the
    one before it, if that one is gone."""
    ledger = _ledgers.get(id(loader))
    if ledger is not None and ledger.loader() is loader:
        return ledger, False
    gone = [each for each in set(_ledgers.values()) if each.loader() is None and each.site == site]
    ledger = gone[0] if gone else Ledger(next(_numbers))
    for place in [place for place, each in _ledgers.items() if each is ledger]:
        del _ledgers[place]
    ledger.loader, ledger.site = ref(loader), site
    ledger.loaders += 1
    ledger.length, ledger.iterable = lengths.loader_length(loader), lengths.is_iterable(loader)
    ledger.workers = loader.__dict__.get("num_workers", 0)
    _ledgers[id(loader)] = ledger
    return ledger, True


def began(ledger: Ledger, site: list[str | int] | None, took: int) -> None:
    """A pass begins, which took so many nanoseconds; the one before it was left early if nobody saw its end."""
    ledger.opening += took
    if not ledger.ended and flight.steps() - ledger.steps <= 1:
        ledger.short += 1
        if ledger.short >= 8 and not ledger.short & (ledger.short - 1):
            facts.tell("short-passes", ledger.facts())
    elif ledger.passes:
        ledger.short = 0
    ledger.passes += 1
    ledger.ended, ledger.site, ledger.again = False, site, 0
    ledger.begin(flight.steps())


def ended(ledger: Ledger, batches: int) -> None:
    """A pass came to its own end, or was asked again after it."""
    if ledger.ended:
        ledger.again += 1
        if ledger.again > 1 and not ledger.again & (ledger.again - 1):
            facts.tell("asked-after-end", {**ledger.facts(), "again": ledger.again})
        return
    ledger.ended = True
    ledger.trained += flight.steps() - ledger.steps
    if batches:
        ledger.full_passes += 1
        ledger.empty = 0
        if ledger.passes <= 3:
            facts.write("pass", {**ledger.facts(), "batches": batches})
        return
    ledger.empty += 1
    if ledger.empty < 4 or not ledger.empty & (ledger.empty - 1):
        # The same lines made steps with another loader: then they train, and this one should have been trained on.
        others = any(each.trained for each in _ledgers.values() if each is not ledger and each.site == ledger.site)
        facts.tell("empty-pass", {**ledger.facts(), "trains": others})


def look(ledger: Ledger, batches: int, batch: Any) -> None:
    """A batch came in a step that is looked at: is the pass longer than it should be, and is this batch news?"""
    global _spent, _began
    begin = monotonic_ns()
    if not _began:
        _began = begin
    if ledger.length is not None and batches > ledger.over * max(ledger.length, 1):
        ledger.over = max(2 * ledger.over, batches // max(ledger.length, 1) + 1)
        facts.tell("over-length", {**ledger.facts(), "batches": batches, "seconds": (begin - ledger.began) / 1e9})
    tensors = list(fingerprints.leaves(batch))
    flight.batch_size = sum(t.numel() for t in tensors)
    flight.words[at.W_BATCH] = batches
    flight.words[at.W_BATCH_BYTES] = sum(t.numel() * t.element_size() for t in tensors)
    if (_spent - ALLOWED) * SHARE > begin - _began:
        return
    found = fingerprints.rows(tensors)
    if found:
        _compare(ledger, batches, found)
    _spent += monotonic_ns() - begin


def _compare(ledger: Ledger, batches: int, found: list[int]) -> None:
    whole = hash(tuple(found))
    ledger.same = ledger.same + 1 if whole == ledger.last else 0
    ledger.last = whole
    if ledger.same >= 7 and not (ledger.same + 1) & ledger.same:
        facts.tell("same-batch", {**ledger.facts(), "batches": batches})
    ledger.rows += len(found)
    seen, workers = ledger.seen, ledger.workers
    for row in found:
        before = seen.get(row)
        if before is None:
            if batches <= WINDOW and len(seen) < REMEMBERED:
                seen[row] = batches
        elif before != batches:
            if workers > 1 and (batches - before) % workers:
                ledger.other += 1
            else:
                ledger.own += 1
    repeats = ledger.own + ledger.other
    if repeats >= max(16, 2 * ledger.told_repeats):
        ledger.told_repeats = repeats
        lasted = (monotonic_ns() - ledger.began) / 1e9
        facts.tell("repeats", {**ledger.facts(), "batches": batches, "seconds": lasted, "endless": _endless(ledger)})


def _endless(ledger: Ledger) -> bool:
    """Asked when samples were seen to repeat, which is rare."""
    from ..loops import endless_stream

    return ledger.iterable and endless_stream.goes_round(getattr(ledger.loader(), "__dict__", {}).get("dataset"))
