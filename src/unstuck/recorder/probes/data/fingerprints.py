"""Whether what a loader gives repeats: prints of a few samples of each batch that is looked at, compared.

A print is made of bytes at fixed places. Nothing of torch is run on the tensors: their memory is read, so no mode, no
hook and no random number of the user's is touched. Prints are compared within this process only.
"""

from __future__ import annotations

import sys
from ctypes import c_char
from itertools import islice
from time import monotonic_ns
from typing import Any

from ... import dispatch, journal, loading, objects, tensors
from ...loading import Loading
from ...probe import Probe
from ...records.loaders import Repeats, SameBatch
from .passes import PassCounts

MOST_ROWS = 8  # samples of a batch that are looked at
PRINT_BYTES = 512  # of each sample, spread over it
MOST_LEAVES = 4  # tensors of a batch
MOST_BATCHES = 64  # of a pass, of those looked at, whose samples are remembered
MOST_SAMPLES = 2048  # that are remembered
MIN_SAME = 7  # batches in a row like the one before
MIN_REPEATS = 16  # samples that came before


class Prints:
    """What is kept of one loader. `same` and `last` go on from pass to pass: next(iter(loader)) begins one a step."""

    def __init__(self) -> None:
        self.last = self.same = 0
        self.apart = 1
        self.given = 0  # batches the loader had given when one was last looked at
        self.begin(0)

    def begin(self, passes: int) -> None:
        self.passes = passes
        self.seen: dict[int, int] = {}  # by print: number of the batch in the present pass
        self.looks = self.rows = self.own = self.other = 0
        self.reported = self.reported_at = 0  # repeats and batches at that time


class Fingerprints(Probe):
    name = "fingerprints"
    governed = frozenset(("batch_looked_at",))

    def forget(self) -> None:
        self.prints = loading.ByLoader(Prints)

    def batch_looked_at(self, known: Loading, iterator: Any, batch: Any) -> None:
        found = rows(batch)
        if not found:
            return
        prints, batches = self.prints[known.number], loading.batches_of(iterator)
        if prints.passes != known.passes:
            prints.begin(known.passes)
        of_pass: PassCounts = dispatch.probe("passes").counts[known.number]
        self._compare(known, prints, hash(tuple(found)))
        if prints.same >= MIN_SAME and not (prints.same + 1) & prints.same:
            journal.tell(
                SameBatch(**known.about(), same=prints.same, apart=prints.apart, batches=batches, short=of_pass.short)
            )
        _note(prints, found, batches, known.workers)
        repeats = prints.own + prints.other
        if repeats >= MIN_REPEATS and (repeats >= 2 * prints.reported or batches >= 2 * prints.reported_at):
            prints.reported, prints.reported_at = repeats, batches
            journal.tell(
                Repeats(
                    **known.about(),
                    looks=prints.looks,
                    rows=prints.rows,
                    own=prints.own,
                    other=prints.other,
                    batches=batches,
                    seconds=(monotonic_ns() - of_pass.began) / 1e9,
                    endless=_endless(known.loader()),
                )
            )

    def _compare(self, known: Loading, prints: Prints, whole: int) -> None:
        """With the batch that was looked at before; it need not be the one given before."""
        given = known.given()
        if whole != prints.last:
            prints.same, prints.apart = 0, 1
        else:
            prints.same += 1
            prints.apart = max(prints.apart, given - prints.given)
        prints.last, prints.given = whole, given


def _endless(loader: Any) -> bool:
    """Asked when samples were seen to repeat, which is rare."""
    from ..loops import endless_stream

    own = objects.Own(loader)
    return any(endless_stream.goes_round(own.get(name)) for name in ("dataset", "batch_sampler", "sampler"))


def _note(prints: Prints, found: list[int], batches: int, workers: int) -> None:
    """Count samples that came before in this pass; batches come from the workers in turn."""
    prints.looks += 1
    prints.rows += len(found)
    seen = prints.seen
    for row in found:
        before = seen.get(row)
        if before is None:
            if prints.looks <= MOST_BATCHES and len(seen) < MOST_SAMPLES:
                seen[row] = batches
        elif before != batches:
            if workers > 1 and (batches - before) % workers:
                prints.other += 1
            else:
                prints.own += 1


def rows(batch: Any) -> list[int] | None:
    """A print of each of the first samples; None where the tensors do not have one row a sample."""
    known = [tensor for _, tensor in islice(tensors.plain_tensors(batch), MOST_LEAVES)]
    if not known or not all(_readable(tensor) for tensor in known):
        return None
    count = known[0].size(0)
    if any(tensor.size(0) != count for tensor in known):
        return None
    memory = [_memory(tensor, count) for tensor in known]
    found = []
    for row in range(min(count, MOST_ROWS)):
        parts: tuple[bytes, ...] = tuple(raw[row * size : (row + 1) * size : step] for raw, size, step in memory)
        if any(part.count(part[:1]) != len(part) for part in parts):
            found.append(hash(parts))
    return found


def _readable(tensor: Any) -> bool:
    strided = tensor.layout is sys.modules["torch"].strided  # of others it cannot even be asked how they lie
    return (
        strided
        and tensor.is_cpu
        and tensor.dim() > 0
        and tensor.numel() > 0
        and tensor.is_contiguous()
        and bool(tensor.data_ptr())
    )


def _memory(tensor: Any, count: int) -> tuple[Any, int, int]:
    """Where it lies, the bytes of a row, and how far apart the bytes of a print are."""
    whole = tensor.numel() * tensor.element_size()
    size = whole // count
    # An odd distance: every byte of a number gets its turn.
    return (c_char * whole).from_address(tensor.data_ptr()), size, max(1, size // PRINT_BYTES) | 1
