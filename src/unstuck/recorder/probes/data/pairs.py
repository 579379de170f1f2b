"""Whether an input that comes again has the same target: where the two are shuffled apart it has another."""

from __future__ import annotations

import sys
from typing import Any

from ...records.data import PairsSeen

MAX_KNOWN = 8192  # inputs that are remembered
MAX_ROWS = 512  # of a batch
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
        rows = inputs.double().flatten(1)[:MAX_ROWS]
        places = torch.arange(1, rows.shape[1] + 1, dtype=torch.int64, device="cpu")
        keys = (rows.contiguous().view(torch.int64) * (places * _FACTOR | 1)).sum(1).tolist()
        for key, target in zip(keys, targets.reshape(-1)[:MAX_ROWS].tolist(), strict=False):
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
