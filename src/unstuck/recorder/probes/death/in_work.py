"""The sample that this process is fetching, and the file it opened last, as its flight file has them."""

from __future__ import annotations

from ... import attempts, flight
from ... import layout as at
from ...records.deaths import SampleInWork

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


LONGEST = 100_000  # indices of a batch that are gone through


def read() -> SampleInWork:
    w = flight.words
    if not w[at.W_FETCHING]:
        return SampleInWork(worker=worker())
    if w[at.W_POSITION] == at.COLLATING:
        return SampleInWork(worker=worker(), key=_key(), collating=True)
    return SampleInWork(worker=worker(), sample=_some(w[at.W_SAMPLE]), key=_key(), opened=attempts.last())


def worker() -> int | None:
    return _some(flight.words[at.W_WORKER])


def position(index: Any) -> int | None:
    """Of the sample in its batch."""
    sample, place = flight.words[at.W_SAMPLE], flight.words[at.W_POSITION]
    if place >= 0:
        return place
    if (type(index) is list or type(index) is tuple) and sample >= 0 and place != at.COLLATING:
        return next((n for n, each in enumerate(index[:LONGEST]) if type(each) is int and each == sample), None)
    return None


def _key() -> str:
    return flight.text(at.W_KEY_LENGTH, at.KEY_AT, at.KEY_SIZE)


def _some(word: int) -> int | None:
    return None if word < 0 else word
