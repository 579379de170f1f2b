"""A picture or sequence in a few numbers: some of its values as they are, and how alike neighbours in it are."""

from __future__ import annotations

import sys
from typing import Any

from . import bounded_rows

VALUES = 48  # of a sample
READ = 256  # of a sample, for how alike neighbours are
LAGS = (1, 2, 4)


class Summary:
    """Of samples of one kind: all are as long."""

    def __init__(self) -> None:
        self.width: int | None = None

    def of(self, laid: Any, rows: bounded_rows.Rows | None = None) -> Any:
        """`laid`: samples first, channels or features last."""
        torch = sys.modules["torch"]
        whole, few = (_thinned(laid, most) for most in (READ, VALUES))
        whole, few = ((rows.of(each) if rows is not None else each).double() for each in (whole, few))
        found = torch.cat((*_neighbours(whole), few.flatten(1)), 1)
        self.width = int(found.shape[1]) if self.width is None else self.width
        return torch.nn.functional.pad(found, (0, self.width - int(found.shape[1])))


def values(summarised: Any, width: int) -> Any:
    """What it has of the values themselves: by sample, place and channel; nothing where channels are left out."""
    taken = summarised[:, len(LAGS) :]
    return taken.reshape(len(taken), -1, width) if width <= VALUES and taken.shape[1] % width == 0 else None


def _thinned(laid: Any, most: int) -> Any:
    width = int(laid.shape[-1])
    return bounded_rows.thinned(laid[..., :: -(-width // most)], most * int(laid.shape[0]))


def _neighbours(table: Any) -> list[Any]:
    """Along all dimensions but the first and the last: whatever the phase of a signal, or the place of a thing."""
    torch = sys.modules["torch"]
    centered = table - table.mean(dim=tuple(range(1, table.dim())), keepdim=True)
    size = centered.square().flatten(1).mean(1, keepdim=True).clamp_min(1e-30)
    found = []
    for lag in LAGS:
        sums = torch.zeros_like(size)
        for dim in range(1, table.dim() - 1):
            length = int(table.shape[dim])
            if length > lag:
                both = centered.narrow(dim, 0, length - lag) * centered.narrow(dim, lag, length - lag)
                sums = sums + both.flatten(1).mean(1, keepdim=True)
        found.append(sums / size)
    return found
