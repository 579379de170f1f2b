"""Does a batch lie in the dataset's own memory, and does the training write to it there?

A batch that was handed out is compared with what the dataset holds, by address. Where they share memory, its bytes
are kept, and compared when the training wants the next batches: what changed in between, the training modified. What
changes while a batch is fetched, the dataset modifies itself (a buffer that it fills anew): that is its own affair.
Where other threads run, only the batch in work counts: they may fill the memory of those before it.

That the training writes there is one thing; that it does harm is proven when a later pass gets what was left, and that
is changed once more.
"""

from __future__ import annotations

import sys
from itertools import islice
from typing import Any

from ... import flight, journal, loading, tensors
from ...loading import Loading
from ...probe import Probe, is_due
from ...records.loaders import AliasedBatch
from . import dataset_memory
from .dataset_memory import Extent, Within
from .watched_memory import MOST_BYTES, Sharing, Watched, has_company
from .writing_line import WritingLine

BIT = 1  # of the word that says who wants to hear of every batch
MOST_LEAVES = 32  # of a batch
MOST_SAMPLES = 1024  # of a batch, whose places in the dataset are looked at
WATCHED_BATCHES = 4  # some trainers draw the next one before they use the last
MIN_REGIONS = 3  # that were written to, each with data of its own; at the end of a pass two will do
ENOUGH = 256  # places that came again as they were left: then it is looked at now and then only
MOST_TRIES = 3  # at the line that writes
PROVING = 64
"""Looks that are made whatever the governor says, in passes after one that wrote: where there is a fault, its proof is
worth some milliseconds."""
WRITES, HARM = 1, 2
"""What was reported: that the training writes there; that a later pass gets what it left, and changes that too."""


class Aliases(Probe):
    name = "aliases"
    governed = EXPENSIVE = frozenset(("batch_looked_at",))

    def __init__(self) -> None:
        self._line = WritingLine(self.name, self._has_changed)
        self.forget()

    def forget(self) -> None:
        self._line.leave()
        self.watched: list[Watched] = []  # parts of the last batches that lie in a dataset's memory
        self.loaders = loading.ByLoader(Sharing)
        self._company = False  # other threads ran since the batch in work came
        self._proving, self.governed = PROVING, self.EXPENSIVE

    def remove(self) -> None:
        self._line.leave()
        self._watch([])

    def batch_looked_at(self, of: Loading, iterator: Any, batch: Any) -> None:
        if not self.governed:
            self._proving -= 1
            self._govern()
        known = self.loaders[of.number]
        known.loading, known.passes = of, of.passes
        worth = is_due(known.looks) or (known.shared and known.again < ENOUGH)
        if worth and not known.own and known.reported != HARM:
            known.looks += 1
            self._look(known, iterator, batch)

    def batch_asked(self, _iterator: Any) -> None:
        """The training wants the next batch: what of those before it has changed since?"""
        if not self.watched:
            return
        self._company = self._company or has_company()
        followed = self._line.leave()
        for part in self.watched:
            now = part.changed()
            if now is not None:
                if self._counts(part):
                    self._note(part, now, followed)
                part.before = now
            part.age += 1
        for known in {id(part.sharing): part.sharing for part in self.watched}.values():
            self._decide(known, MIN_REGIONS)
        self._watch([part for part in self.watched if part.age < WATCHED_BATCHES])

    def batch_fetched(self, _iterator: Any) -> None:
        """The batch is there: what has changed meanwhile was changed by the dataset itself."""
        if not self.watched:
            return
        self._company = has_company()
        for part in self.watched:
            if part.changed() is not None:
                part.sharing.own = True
        self._watch([part for part in self.watched if not part.sharing.own])

    def pass_ended(self, of: Loading, _batches: int) -> None:
        self.pass_left(of)

    def pass_left(self, of: Loading) -> None:
        """A pass is over, or another begins: what happens to the data between passes is not written to a batch."""
        self.remove()
        known = self.loaders.get(of.number)
        if known is not None:
            self._decide(known, 2)
            if known.reported == WRITES and known.again and not known.reported_again:
                _report(known)
        self._govern()

    def _govern(self) -> None:
        proves = self._proving > 0 and any(known.reported == WRITES for known in self.loaders.values())
        self.governed = frozenset() if proves else self.EXPENSIVE

    def _watch(self, parts: list[Watched]) -> None:
        self.watched, state = parts, flight.state
        state[flight.WATCHED] = state[flight.WATCHED] | BIT if parts else state[flight.WATCHED] & ~BIT

    def _look(self, known: Sharing, iterator: Any, batch: Any) -> None:
        samples = (loading.samples_of(known.loading, iterator)[0] or ())[:MOST_SAMPLES]
        walk = tensors.Walk(samples=len(samples))
        leaves = ((leaf.place, dataset_memory.extent(leaf.value)) for leaf in walk.leaves(batch))
        parts = list(islice(((place, lies) for place, lies in leaves if lies is not None), MOST_LEAVES))
        wants_line = bool(known.changes) and known.line is None and known.tries < MOST_TRIES
        owners: set[int] = set()
        within: list[Within | None] = []
        if not wants_line and not is_due(known.looks):
            within = [known.extents.around(lies) for _, lies in parts]
        if parts and not any(within):
            places = {sample for sample in samples if type(sample) is int}
            holding, owners = dataset_memory.held(loading.dataset_of(iterator), places)
            known.extents.remember(holding)
            shared = dataset_memory.SharedMemory(holding if known.loading.workers else [])
            within = [known.extents.around(lies) or shared.find(lies) for _, lies in parts]
        new = []
        for (place, lies), found in zip(parts, within, strict=True):
            if found is not None and not _is_trained(found[1]):
                of = place if place is not None else 0 if len(samples) == 1 else None
                sample = samples[of] if of is not None and type(samples[of]) is int else None
                new.append(Watched(known, *found, lies.end - lies.begin, sample))
        for part in new:
            part.watch(max(512, MOST_BYTES // len(new)))
            known.came(part)
        known.shared += bool(new)
        self._watch([*self.watched, *new])
        if new and wants_line:
            known.tries += 1
            self._line.follow(sys._getframe(), frozenset(owners - walk.seen))

    def _counts(self, part: Watched) -> bool:
        """What changes in it is the training's doing."""
        return not part.age or not self._company

    def _has_changed(self) -> bool:
        return any(part.before and self._counts(part) and part.changed() is not None for part in self.watched)

    def _note(self, part: Watched, now: bytes, followed: bool) -> None:
        known = part.sharing
        if followed and self._line.site is not None and known.line is None:
            known.line = self._line.site
            known.own = known.own or self._line.own
        known.was_written(part, now)

    def _decide(self, known: Sharing, regions: int) -> None:
        """Report once that it writes, and once that it does harm, with the line if that can be had. A stream may read
        all of it anew in the next pass: there only harm is reported."""
        writes_there = len(known.written) >= regions or (known.changes and known.again)
        level = HARM if known.harmed else WRITES if writes_there and not known.loading.iterable else 0
        waits_for_line = known.line is None and known.tries < MOST_TRIES and regions > 2
        if level > known.reported and not known.own and not waits_for_line:
            known.reported = level
            _report(known)


def _is_trained(own: Extent) -> bool:
    return dataset_memory.is_tensor(own.thing) and bool(own.thing.requires_grad)


def _report(known: Sharing) -> None:
    last, of = known.latest, known.loading
    if last is None:
        return
    known.reported_again = known.again
    before, after = last.values()
    journal.tell(
        AliasedBatch(
            **of.about(),
            looks=known.looks,
            shared=known.shared,
            changes=known.changes,
            again=known.again,
            rewritten=known.rewritten,
            harm=known.reported == HARM,
            line=known.line,
            attribute=last.part.name.lstrip("."),
            sample=last.part.sample,
            address=last.part.begin,
            bytes=last.part.end - last.part.begin,
            version_before=last.versions[0],
            version_after=last.versions[1],
            value_before=before,
            value_after=after,
        )
    )
