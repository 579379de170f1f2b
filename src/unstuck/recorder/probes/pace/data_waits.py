"""How long the training waits for a loader's batches and for passes to begin; reported where it is much."""

from __future__ import annotations

from time import monotonic_ns

from ... import flight, journal
from ... import layout as at
from ...loading import SUSPECT, Loading
from ...probe import Probe
from ...records.loaders import DataWait

MIN_SHARE = 10  # one part in so many of the time must be lost
MOST_LOADERS = 64


class DataWaits(Probe):
    name = "waits"

    def forget(self) -> None:
        self._reported: dict[int, Loading] = {}

    def waited_much(self, loading: Loading) -> None:
        """It adds up: if it is a good part of the time of a training, say so; again at twice that, then at half as
        much again."""
        lost = loading.waited + loading.starting
        loading.tell_at = 2 * SUSPECT if loading.tell_at == SUSPECT else lost + lost // 2
        if lost * MIN_SHARE < loading.until - loading.since or not loading.trains():
            return
        if len(self._reported) < MOST_LOADERS:
            self._reported[loading.number] = loading
        flight.words[at.W_STARVED] += 1
        journal.tell(measured(loading))

    def last(self) -> None:
        """What was reported once is reported as it came out."""
        for loading in self._reported.values():
            journal.tell(measured(loading))


def measured(loading: Loading) -> DataWait:
    return DataWait(
        **loading.about(),
        drawn=loading.drawn,
        waited=loading.waited / 1e9,
        longest=loading.longest / 1e9,
        seconds=(loading.until - loading.since) / 1e9,
        first_wait=loading.begun / 1e9,
        starts=loading.starts,
        starting=loading.starting / 1e9,
        opening=loading.opening / 1e9,
        since_first=(monotonic_ns() - loading.first) / 1e9,
        pickled=loading.pickled,
        pickling=loading.pickling / 1e9,
        trains=loading.trains(),
    )
