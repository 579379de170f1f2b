"""Whether an input that comes again has the same target: where the two are shuffled apart it has another."""

from __future__ import annotations

import sys
from typing import Any

from ...records.data import PairsSeen

MAX_KNOWN = 8192  # inputs that are remembered
MAX_ROWS = 512  # of a batch
MIN_DISTINCT = 4  # values in a row: two samples with fewer may well be the same by chance
_FACTOR = 0x9E3779B97F4A7C15 - (1 << 64)  # 2**64 over the golden ratio, as a signed word


class Pairs:
    def __init__(self) -> None:
        self._known: dict[int, tuple[int, float]] = {}  # by the content of an input: its batch, and its target
        self._again = self._changed = self._batches = 0
        self._example: tuple[int, float, int, float] | None = None

    def take(self, inputs: Any, targets: Any) -> None:
        """One row a sample in both; one number a sample in the second."""
        torch = sys.modules["torch"]
        self._batches += 1
        rows = inputs.double().flatten(1)[:MAX_ROWS].contiguous().view(torch.int64)
        rich, targets = _is_rich(rows), targets.reshape(-1)[:MAX_ROWS]
        rows, targets = rows[rich], targets[rich]
        places = torch.arange(1, rows.shape[1] + 1, dtype=torch.int64, device="cpu")
        keys = (rows * (places * _FACTOR | 1)).sum(1).tolist()
        for key, target in zip(keys, targets.tolist(), strict=True):
            known = self._known.get(key)
            if known is None:
                if len(self._known) < MAX_KNOWN:
                    self._known[key] = self._batches, target
            elif known[0] != self._batches:  # inputs of one batch may be the same by nature
                self._again += 1
                if target != known[1]:
                    self._changed += 1
                    self._example = self._example or (*known, self._batches, target)

    def record(self) -> PairsSeen:
        return PairsSeen(again=self._again, changed=self._changed, example=self._example)


def _is_rich(rows: Any) -> Any:
    """Whether each row has so many distinct values that no other sample has all of them."""
    others = rows != rows[:, :1]
    for _ in range(MIN_DISTINCT - 2):
        others = others & (rows != rows.gather(1, others.int().argmax(1, keepdim=True)))
    return others.any(1)
