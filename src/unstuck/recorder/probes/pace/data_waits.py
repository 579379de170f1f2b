"""How long a loader's batches were waited for, and what beginning its passes took; told where it is much."""

from __future__ import annotations

from ... import facts, flight
from ... import layout as at
from . import pickles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..data.passes import Ledger

SUSPECT = 2_500_000_000  # nanoseconds of waiting after which it is first told; then at twice, and half as much again
SHARE = 10  # one part in so many of the time must be lost for it to be told
_told: list[Ledger] = []


def began(ledger: Ledger, took: int) -> None:
    """A pass begins, and beginning it took so long. In a new process everything is new: no pass is begun again. Workers
    that stay are handed nothing anew: then what they were handed at first still counts."""
    ledger.opened = took
    ledger.pickling += pickles.took
    ledger.pickled = max(ledger.pickled, pickles.largest)


def drew(ledger: Ledger, number: int) -> None:
    """A batch came. The first of a pass is made while nothing runs beside it: that wait is a cost of beginning."""
    if number > 1:
        ledger.drawn += 1
        ledger.waited += flight.waited
        if flight.waited > ledger.longest:
            ledger.longest = flight.waited
    elif ledger.since:
        ledger.starts += 1
        ledger.starting += flight.waited + ledger.opened
    else:
        ledger.since, ledger.begun = flight.came, flight.waited
    ledger.until = flight.came
    if ledger.waited + ledger.starting > ledger.tell_at:
        much(ledger)


def much(ledger: Ledger) -> None:
    """It adds up: if it is a good part of the time of a training, say so."""
    lost = ledger.waited + ledger.starting
    ledger.tell_at = 2 * SUSPECT if ledger.tell_at == SUSPECT else lost + lost // 2
    if lost * SHARE < ledger.until - ledger.since or not trains(ledger):
        return
    if not ledger.told:
        _told.append(ledger)
    ledger.told += 1
    flight.words[at.W_STARVED] += 1
    facts.tell("waits", told(ledger))


def trains(ledger: Ledger) -> bool:
    """Steps are made on what it gives, or none are made at all: not a validation."""
    return not flight.steps() or bool(ledger.trained) or flight.steps() > ledger.steps


def told(ledger: Ledger) -> dict[str, object]:
    return {
        **ledger.facts(),
        "drawn": ledger.drawn,
        "waited": ledger.waited / 1e9,
        "longest": ledger.longest / 1e9,
        "seconds": (ledger.until - ledger.since) / 1e9,
        "first_wait": ledger.begun / 1e9,
        "starts": ledger.starts,
        "starting": ledger.starting / 1e9,
        "pickled": ledger.pickled,
        "pickling": ledger.pickling / 1e9,
        "trains": trains(ledger),
    }


def forget() -> None:
    """In a forked child: the loaders are its parent's."""
    _told.clear()


def last() -> None:
    """At the end: what was told once is told as it came out."""
    for ledger in _told:
        facts.tell("waits", told(ledger))
