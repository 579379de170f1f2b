"""Reads little of a batch, however large it is: some rows, some places of each, and where bad values hide. Of all rows
it keeps a fair choice.

Nothing here copies more than it reads: what is large is only sliced, or reduced where it lies.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from . import columns

ROWS = 2048  # of a batch that are read, and of all that are kept; of more, some spread over it, others each time
PIECE = 1 << 15  # numbers of a part of a batch that are read
LOOKED, STRIDED = 1 << 21, 1 << 18  # numbers among which NaN and infinity are looked for; if they do not lie in a row
LONG = 1 << 16  # rows among which they are looked for
HIDDEN = 8  # samples of a batch in which a bad value was hidden
KEPT_NUMBERS = 1 << 17  # kept in all: of wide rows fewer are kept
_FACTOR = 0x9E3779B97F4A7C15 - (1 << 64)  # 2**64 over the golden ratio, as a signed word


class Rows:
    """The rows of a batch that are read, and which samples they are."""

    def __init__(
        self, count: int, samples: Sequence[Any] | None, *, first: int = 0, turn: int = 0, whole: bool = False
    ) -> None:
        """`first`: what the first one is called where nobody knows; `turn`: how many batches came before."""
        torch = sys.modules["torch"]
        self.count, self.turn, self.whole, self.search = count, turn, whole, True
        self.places: Sequence[int] = range(count) if whole or count <= ROWS else _spread(count, turn)
        self.index = None if len(self.places) == count else torch.tensor(self.places, dtype=torch.int64, device="cpu")
        numbers = None if samples is None else [samples[place] for place in self.places]
        self.known = numbers is not None and all(type(each) is int for each in numbers)
        self.samples = samples if self.known else None
        self.numbers: Sequence[int] = numbers if numbers is not None and self.known else range(first, first + self.read)
        self.ids = torch.tensor(self.numbers, dtype=torch.int64, device="cpu")
        self.named = self.ids if self.known else torch.full_like(self.ids, columns.UNKNOWN)

    @property
    def read(self) -> int:
        return len(self.places)

    def named_at(self, place: int) -> int:
        number = self.samples[place] if self.samples is not None else None
        return number if type(number) is int else columns.UNKNOWN

    def step(self, width: int) -> int:
        """Every so many of them are few enough, where each has so many numbers."""
        return 1 if self.whole else max(1, -(-self.read * width // PIECE))

    def of(self, tensor: Any, step: int = 1, chosen: Any = None) -> Any:
        """Every so many of them, and of these some columns."""
        if self.index is None:
            tensor = tensor[::step]
            return tensor if chosen is None else tensor[..., chosen]
        index = self.index[::step]
        return tensor[index] if chosen is None else tensor[index.unsqueeze(1), ..., chosen].movedim(1, -1)


def _spread(count: int, turn: int) -> list[int]:
    """One place at random out of each of so many stretches: labels may come in a pattern."""
    at = sys.modules["torch"].arange(ROWS, device="cpu")
    places: list[int] = (at * count // ROWS + _hashed(at + turn * ROWS) % (count // ROWS)).tolist()
    return places


def thinned(tensor: Any, most: int) -> Any:
    """Every second entry along the longest dimension but the first and the last, until it is small."""
    while tensor.numel() > most:
        longest, dim = max((int(tensor.shape[dim]), dim) for dim in range(1, int(tensor.dim()) - 1))
        if longest < 2:
            break
        tensor = tensor[(slice(None),) * dim + (slice(None, None, 2),)]
    return tensor


def hidden(tensor: Any, rows: Rows, shown: Collection[int]) -> Iterator[tuple[int, Any]]:
    """Rows that hold NaN or infinity and are not among those that `shown` it: each with those of its pixels or moments
    that do. `tensor` has channels or features last."""
    torch = sys.modules["torch"]
    if tensor.dtype not in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        return
    start, width = 0, int(tensor.shape[-1])
    most = LOOKED if _dense(tensor) else STRIDED
    if not rows.whole:
        if width > most:
            return
        start, tensor = _window(tensor, most, rows.turn)
    if bool(torch.isfinite(tensor.sum())):  # one bad value would have made the sum bad
        return
    dims = tuple(range(1, int(tensor.dim())))
    bad = ~(torch.isfinite(tensor.amax(dims)) & torch.isfinite(tensor.amin(dims)))  # a sum might overflow
    new = [place for place in bad.nonzero().reshape(-1)[: ROWS + len(shown)].tolist() if place + start not in shown]
    for place in new if rows.whole else new[:HIDDEN]:
        pixels = tensor[place].reshape(-1, width)
        yield place + start, pixels[~torch.isfinite(pixels).all(1)][: max(1, PIECE // width)]


def _window(tensor: Any, most: int, turn: int) -> tuple[int, Any]:
    """A part of it that is not too large, another one each time; and the row it begins with."""
    start = 0
    for dim in (0, *sorted(range(1, int(tensor.dim()) - 1), key=lambda dim: -int(tensor.shape[dim]))):
        size = int(tensor.shape[dim])
        length = max(1, most * size // int(tensor.numel()))
        length = min(length, LONG) if dim == 0 else length
        if length < size:
            turns = -(-size // length)
            begin = min(turn % turns * length, size - length)
            turn //= turns
            tensor = tensor.narrow(dim, begin, length)
            start = begin if dim == 0 else start
    return start, tensor


def _dense(tensor: Any) -> bool:
    """Its numbers lie side by side, in whatever order."""
    span = 1 + sum((int(size) - 1) * int(stride) for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return span == int(tensor.numel())


# --- rows that are kept ---------------------------------------------------------------------------------------------


INDEXED = {
    f"torch.{name}" for name in ("uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")
}
"""Types of which any torch takes single rows; others are converted as a whole first."""


class KeptRows:
    """A fair choice of rows out of any number, the same for every part of a batch: those whose index has the lowest
    hash. No random number is drawn, and two choices that were made apart can be merged into the one that would have
    been made. `parts` has the values of each part, row by row in the order of `keys`."""

    def __init__(self) -> None:
        self.keys: Any = None
        self.samples: Any = None
        self.parts: dict[str, Any] = {}

    def take(self, samples: Any, parts: dict[str, Any]) -> None:
        """`parts`: by name, one row a sample."""
        torch = sys.modules["torch"]
        keys = _hashed(samples)
        if self.keys is None or parts.keys() > self.parts.keys():  # the first batch may have come without its target
            self.keys, self.samples = keys[:0], samples[:0]
            self.parts = {name: part.double()[:0] for name, part in parts.items()}
        if parts.keys() != self.parts.keys():
            return
        width = sum(part[0].numel() for part in parts.values())
        most = max(64, min(ROWS, KEPT_NUMBERS // max(1, width)))
        new = ~torch.isin(keys, self.keys)
        if self.keys.numel() >= most:
            new = new & (keys < self.keys.max())
        if not bool(new.any()):
            return
        merged = torch.cat((self.keys, keys[new]))
        chosen = torch.topk(merged, min(most, merged.numel()), largest=False).indices
        self.samples = torch.cat((self.samples, samples[new]))[chosen]
        for name, part in parts.items():
            taken = part[new].double() if str(part.dtype) in INDEXED else part.double()[new]
            self.parts[name] = torch.cat((self.parts[name], taken))[chosen]
        self.keys = merged[chosen]

    def merge(self, other: KeptRows) -> None:
        if other.keys is not None and other.keys.numel():
            self.take(other.samples, other.parts)


def chosen(count: int, most: int) -> Any:
    """Numbers of rows: a fair choice, where there are more."""
    every = sys.modules["torch"].arange(count, device="cpu")
    return every if count <= most else _hashed(every).argsort()[:most]


def _hashed(samples: Any) -> Any:
    mixed = (samples + 1) * _FACTOR
    mixed = (mixed ^ (mixed >> 29)) * _FACTOR
    return (mixed ^ (mixed >> 32)) & (1 << 62) - 1
