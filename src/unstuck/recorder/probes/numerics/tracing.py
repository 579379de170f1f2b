"""The user's line that an operation of the graph stands in, seen in the next step's own stack.

A broken run goes on breaking: its next forward pass is made with torch's own bookkeeping of stacks switched on
(anomaly mode without its checks, which changes no result), the node at the same place is asked, and it is off again.
"""

from __future__ import annotations

import re
from typing import Any

import torch

from ... import user_code
from ...records import Site
from ...records.numerics import BadTensor, Birth, Operation
from ..learning import graph_reading
from ..learning.graph_reading import SavedTensors

TRIES = 4
_LINE = re.compile(r'File "([^"]+)", line (\d+), in (.*)')


class Tracing:
    def __init__(self, saved: SavedTensors) -> None:
        self._saved = saved
        self._wanted: Birth | None = None
        self._left = 0

    @property
    def waiting(self) -> bool:
        """The graph of the next loss is wanted, whatever its value."""
        return self._wanted is not None

    def begin(self, birth: Birth) -> None:
        """Have the next forward pass note its stacks, if it can and there is something to ask."""
        asked = [about for about in _asked(birth) if about.site is None]
        if asked and not self._saved.hooked and not torch.is_anomaly_enabled():
            self._wanted, self._left = birth, TRIES
            torch.set_anomaly_enabled(True, False)

    def look(self, root: Any) -> bool:
        """Before the backward pass of that step: ask the nodes, and switch it off. True: something was found."""
        if self._wanted is None or root is None:
            return False
        self._left -= 1
        found = False
        for about in _asked(self._wanted):
            site = _site_of(root, about)
            if site is not None:
                about.site = site  # type: ignore[misc]  # it is written anew
                found = True
        if found or self._left <= 0:
            self.stop()
        return found

    def stepped(self) -> None:
        """Steps without a loss of that kind: it is given up after some."""
        self._left -= 1
        if self._left < -TRIES:
            self.stop()

    def stop(self) -> None:
        if self._wanted is not None:
            self._wanted = None
            torch.set_anomaly_enabled(False)


def _asked(birth: Birth) -> list[Operation | BadTensor]:
    return [*birth.operations[:2], *birth.outside[:1]]


def _site_of(root: Any, about: Operation | BadTensor) -> Site | None:
    node = graph_reading.at(root.grad_fn, about.path) if root.grad_fn is not None else None
    if node is None or graph_reading.operation_of(node) != about.operation:
        return None
    for entry in reversed(node.metadata.get("traceback_") or []):
        known = _LINE.search(entry)
        if known is not None and user_code.is_user_file(known[1]):
            return user_code.absolute(known[1]), int(known[2]), known[3].strip()
    return None
