"""A fair choice of rows out of any number, the same for every part of a batch: those whose index has the lowest hash.

No random number is drawn, and two choices that were made apart can be merged into the one that would have been made.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ROWS = 2048
ELEMENTS = 1 << 17
"""Numbers kept in all: of wide rows fewer are kept."""
_FACTOR = -7046029254386353131  # 2**64 over the golden ratio, as a signed word


class Kept:
    """Rows by the hash of their sample: `parts` has the values of each part, row by row in the order of `keys`."""

    def __init__(self) -> None:
        self.keys: Any = None
        self.samples: Any = None
        self.parts: dict[str, Any] = {}

    def take(self, samples: Any, parts: dict[str, Any]) -> None:
        """`parts`: by name, one row a sample."""
        torch = sys.modules["torch"]
        keys = _hashed(samples)
        if self.keys is None:
            self.keys, self.samples = keys[:0], samples[:0]
            self.parts = {name: part.double()[:0] for name, part in parts.items()}
        if parts.keys() != self.parts.keys():
            return
        width = sum(part[0].numel() for part in parts.values())
        most = max(64, min(ROWS, ELEMENTS // max(1, width)))
        new = ~torch.isin(keys, self.keys)
        if self.keys.numel() >= most:
            new = new & (keys < self.keys.max())
        if not bool(new.any()):
            return
        merged = torch.cat((self.keys, keys[new]))
        if merged.numel() > most:
            chosen = torch.topk(merged, most, largest=False).indices
        else:
            chosen = torch.arange(merged.numel(), device="cpu")
        self.samples = torch.cat((self.samples, samples[new]))[chosen]
        self.parts = {name: torch.cat((self.parts[name], part[new].double()))[chosen] for name, part in parts.items()}
        self.keys = merged[chosen]

    def merge(self, other: Kept) -> None:
        if other.keys is not None and other.keys.numel():
            self.take(other.samples, other.parts)


def _hashed(samples: Any) -> Any:
    mixed = (samples + 1) * _FACTOR
    mixed = (mixed ^ (mixed >> 29)) * _FACTOR
    return (mixed ^ (mixed >> 32)) & (1 << 62) - 1
