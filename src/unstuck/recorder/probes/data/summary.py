"""A picture or sequence in a few numbers: some of its values as they are, and how alike neighbours in it are."""

from __future__ import annotations

import sys
from typing import Any

from . import bounded_rows

VALUES = 48  # of a sample
READ, MOST_READ = 256, 1 << 16  # of a sample, and of a batch, for how alike neighbours are
LAGS = (1, 2, 4)


class Summary:
    """Of samples of one kind: as many numbers of each."""

    def __init__(self) -> None:
        self.width: int | None = None

    def of(self, laid: Any, rows: bounded_rows.Rows | None = None) -> Any:
        """`laid`: samples first, channels or features last."""
        torch = sys.modules["torch"]
        read = rows.read if rows is not None else int(laid.shape[0])
        whole, few = (_thinned(laid, most) for most in (max(VALUES, min(READ, MOST_READ // max(1, read))), VALUES))
        whole, few = ((rows.of(each) if rows is not None else each).double() for each in (whole, few))
        few = few.flatten(1)
        self.width = int(few.shape[1]) if self.width is None else self.width
        few = torch.nn.functional.pad(few, (0, self.width - int(few.shape[1])))
        return torch.cat((few, *_neighbours(whole)), 1)


def values(summarised: Any, width: int) -> Any:
    """Of sequences: the values themselves, by sample, place and channel; None where some channels were left out."""
    taken = summarised[:, : -2 * len(LAGS)]
    return taken.reshape(len(taken), -1, width) if width <= VALUES and taken.shape[1] % width == 0 else None


def _thinned(laid: Any, most: int) -> Any:
    width = int(laid.shape[-1])
    return bounded_rows.thinned(laid[..., :: -(-width // most)], most * int(laid.shape[0]))


def _neighbours(table: Any) -> list[Any]:
    """A column for each dimension and lag: whatever the phase of a signal is, or the place of what is in a picture."""
    torch = sys.modules["torch"]
    centered = table - table.flatten(1).mean(1).reshape(-1, *[1] * (table.dim() - 1))
    size = centered.square().flatten(1).mean(1, keepdim=True).clamp_min(1e-30)
    found = []
    for dim in range(1, table.dim()):
        length = int(table.shape[dim])
        for lag in LAGS:
            if length <= lag:
                found.append(torch.zeros_like(size))
                continue
            both = centered.narrow(dim, 0, length - lag) * centered.narrow(dim, lag, length - lag)
            found.append(both.flatten(1).mean(1, keepdim=True) / size)
    return found
