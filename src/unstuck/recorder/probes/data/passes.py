"""Passes over loaders: how they are set, their workers, and passes that are empty, left early, too long or over."""

from __future__ import annotations

import sys
from time import monotonic_ns
from typing import Any

from ... import dispatch, flight, journal, loading, tensors
from ... import layout as at
from ...hooks.processes import pickles
from ...loading import Loading
from ...probe import Probe, is_due
from ...records.loaders import AskedAfterEnd, EmptyPass, OverLength, PassEnded, ShortPasses, WorkersStarted
from . import loader_source
from .dataset_state import REPLACED

MIN_SHORT = 8  # passes left early, in a row
MOST_ENDS = 3  # passes whose end is written
MOST_NODES = 32  # things in a batch that are looked at for its size


def _row(loader: int, *about: int) -> None:
    place = at.PASSES_AT + loader % at.PASSES_KEPT * at.PASS_WORDS
    for offset, word in enumerate((loader + 1, *about)):
        flight.words[place + offset] = word


class PassCounts:
    """Of one loader."""

    def __init__(self) -> None:
        self.loaders = 0
        self.pids: list[int] = []
        self.began = 0  # when the present pass began
        self.short = self.empty = 0  # passes in a row that were left after one step at most; that had no batch
        self.full_passes = 0
        self.again = 0  # times that it was asked after the end of the present pass
        self.over = 1  # times its own length, from which on the present pass is too long


class Passes(Probe):
    name = "passes"

    def forget(self) -> None:
        self.counts = loading.ByLoader(PassCounts)

    def pass_began(self, known: Loading, iterator: Any) -> None:
        counts, loader = self.counts[known.number], known.loader()
        if counts.loaders != known.loaders:
            counts.loaders = known.loaders
            if is_due(counts.loaders):
                journal.write(loader_source.settings(known, loader))
        known.opening += known.opened
        known.backwards = flight.state[flight.BACKWARDS]
        self._left_early(known, counts)
        _row(known.number, known.passes + 1, at.NONE, flight.steps())
        counts.again, counts.over, counts.began = 0, 1, monotonic_ns()
        pids = loading.workers_of(iterator)
        if pids and pids != counts.pids:
            counts.pids = pids
            self._workers(known, loader, counts)

    def _left_early(self, known: Loading, counts: PassCounts) -> None:
        """The pass before was, if nobody saw its end and no more than a step was made in it."""
        if not known.ended and flight.steps() - known.steps <= 1:
            counts.short += 1
            if counts.short >= MIN_SHORT and is_due(counts.short):
                since = (monotonic_ns() - known.first) / 1e9
                journal.tell(
                    ShortPasses(**known.about(), short=counts.short, opening=known.opening / 1e9, since_first=since)
                )
        elif known.passes:
            counts.short = 0

    def _workers(self, known: Loading, loader: Any, counts: PassCounts) -> None:
        """New ones. Those that stay are handed nothing anew: then what they were handed at first still counts."""
        pickled, took = pickles.largest, pickles.took
        pickles.begin()
        known.pickled = max(known.pickled, pickled)
        known.pickling += took
        changed = dispatch.probe("dataset state").workers_began(loader, known.number)
        journal.write(
            WorkersStarted(
                number=known.number,
                loader=id(loader),
                pids=counts.pids,
                changed=[name for name in changed if name != REPLACED],
                replaced=REPLACED in changed,
                pickled=pickled,
                pickling=took / 1e9,
            )
        )

    def pass_ended(self, known: Loading, batches: int) -> None:
        """It came to its own end, or was asked again after it."""
        counts = self.counts[known.number]
        if known.ended:
            counts.again += 1
            if counts.again > 1 and not counts.again & (counts.again - 1):
                journal.tell(AskedAfterEnd(**known.about(), again=counts.again))
        elif batches:
            counts.full_passes += 1
            counts.empty = 0
            _row(known.number, known.passes, batches, flight.steps() - known.steps)
            if known.passes <= MOST_ENDS:
                journal.write(PassEnded(**known.about(), batches=batches))
        else:
            counts.empty += 1
            if is_due(counts.empty):
                self._empty(known, counts)

    def _empty(self, known: Loading, counts: PassCounts) -> None:
        # The same lines made steps with another loader: then they train, and this one should have been trained on.
        others = (other for other in loading.everything() if other is not known and other.site == known.site)
        trains = any(other.trained for other in others)
        journal.tell(EmptyPass(**known.about(), empty=counts.empty, full_passes=counts.full_passes, trains=trains))

    def note_size(self, batch: Any) -> None:
        flight.state[flight.SIZE], flight.words[at.W_BATCH_BYTES] = _size(batch)

    def batch_looked_at(self, known: Loading, iterator: Any, batch: Any) -> None:
        """Is the pass longer than it should be?"""
        counts, batches = self.counts[known.number], loading.batches_of(iterator)
        length = known.length
        if length is not None and batches > counts.over * max(length, 1):
            counts.over = max(2 * counts.over, batches // max(length, 1) + 1)
            lasted = (monotonic_ns() - counts.began) / 1e9
            journal.tell(OverLength(**known.about(), batches=batches, seconds=lasted))
        flight.words[at.W_BATCH] = batches
        self.note_size(batch)


def _size(batch: Any) -> tuple[int, int]:
    """Elements and bytes of its tensors, about."""
    tensor, walk = sys.modules["torch"].Tensor, tensors.Walk("spread")
    walk.left = MOST_NODES
    elements = whole = 0.0
    for leaf in walk.leaves(batch):
        if type(leaf.value) is tensor:
            elements += leaf.times * leaf.value.numel()
            whole += leaf.times * leaf.value.numel() * leaf.value.element_size()
    return int(elements), int(whole)
