"""A term of the loss whose gradient dies inside the graph: it arrives at an operation, and leaves it as all zeros.

Looked for between the loss and the layers, at a few backward passes. Two kinds of operation can do it. One writes
numbers over what the model computed (`masked_fill`, `where`, a product with a mask), or is a distance of 0, and a
choice after it (`min`) takes nothing else. The other has a limit (`clamp`, `relu`), and everything lies beyond it where
the loss wants it back; what the loss only drives further is satisfied: a hinge, a clipped ratio, free bits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from math import prod
from types import FrameType
from typing import Any, NamedTuple

import torch

from ... import governor, gpu, guard
from ...records.learning import DeadTerm, TermEnd
from . import graph_reading, script_lines
from .graph_reading import before, kind_of, name_of, operation_of, saved
from .view_operations import PICKS, SHAPES

NAME = "dead terms"  # a fault here switches only this off
MAX_NODES, MAX_HOOKS = 96, 12
MAX_ELEMENTS = 1 << 20  # of a result that is looked at
MAX_LINES = 8  # that call backward
IDLE_LOOKS = 3  # at graphs without such an operation
CHOICES = frozenset(
    f"{name}Backward" for name in ("Min", "Max", "Amin", "Amax", "Minimum", "Maximum", "Topk", "Kthvalue", "Median",
                                   "Sort", "Logsumexp", "LogSoftmax", "Softmax")
)  # fmt: skip
WRITES = frozenset(
    f"{name}Backward" for name in ("MaskedFill", "Where", "IndexPut", "IndexFill", "FillDiagonal", "MaskedScatter",
                                   "Scatter", "Triu", "Tril", "Mul")
)  # fmt: skip
DISTANCES = frozenset(f"{name}Backward" for name in ("Cdist", "EuclideanDist", "LinalgVectorNorm", "Norm", "Abs"))
"""Without a slope where they are 0."""
LIMITS = frozenset(
    f"{name}Backward" for name in ("Relu", "Clamp", "ClampMin", "ClampMax", "Hardtanh", "Minimum", "Maximum")
)  # fmt: skip
PARTS = frozenset((*graph_reading.SUMMING, "WhereBackward", "MinimumBackward", "MaximumBackward", "StackBackward",
                   "CatBackward", "IndexPutBackward"))  # fmt: skip
"""What may be given several results of the model's and is gone through."""
LAYERS = frozenset((*graph_reading.PRODUCTS, "NativeBatchNormBackward", "NativeLayerNormBackward"))
VIEWS = SHAPES | PICKS

Key = tuple[tuple[int, ...], str]  # the way from the loss to an operation, and its name


class Suspect(NamedTuple):
    node: Any
    path: tuple[int, ...]
    choice: str
    """The nearest operation between it and the loss that chooses among its results."""


class End(NamedTuple):
    """How an operation stops a gradient; of a limit, where values lie below and above it."""

    kind: TermEnd
    below: Any = None
    above: Any = None


class DeadTerms:
    """By the line that calls backward: nodes at which a gradient arrived and never left."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, int], Line] = {}

    def look(self, root: Any, frame: FrameType) -> None:
        here = script_lines.user_frame(frame)
        if here is None or NAME in guard.OFF or not root.is_cpu:
            return
        key = here.f_code.co_filename, here.f_lineno
        if key not in self._lines and len(self._lines) < MAX_LINES:
            self._lines[key] = Line()
        line = self._lines.get(key)
        if line is not None and line.is_due():
            line.look(root.grad_fn)

    def record(self) -> DeadTerm | None:
        found = [term for line in self._lines.values() for term in line.terms.values() if term is not None]
        return max(found, key=lambda term: term.seen, default=None)


class Line:
    def __init__(self) -> None:
        self.terms: dict[Key, DeadTerm | None] = {}
        """None: a gradient came through."""
        self._passes = self._due = self._idle = 0
        self._handles: list[Any] = []

    def is_due(self) -> bool:
        """At the first passes, then more and more rarely."""
        self._passes += 1
        if self._passes < self._due or self._idle >= IDLE_LOOKS:
            return False
        self._due = self._passes + max(2, self._passes // 2)
        return True

    def look(self, root: Any) -> None:
        while self._handles:
            self._handles.pop().remove()
        for node, path, choice in islice(_suspects(root), MAX_HOOKS):
            key = path, operation_of(node)
            if self.terms.get(key, key) is not None:
                end = _end(node)
                if end is None:
                    self.terms[key] = None
                else:
                    self._handles.append(node.register_hook(self._hook(key, choice, end)))
        self._idle += not self._handles

    def _hook(self, key: Key, choice: str, end: End) -> Any:
        """It must not hold the node, which holds it."""
        left = [key]  # a graph that is kept may be gone through again

        def passed(given: Any, arrived: Any) -> None:
            if left:
                guard.attempt(NAME, self._take, left.pop(), choice, end, given, arrived)

        return passed

    def _take(self, key: Key, choice: str, end: End, given: Any, arrived: Any) -> None:
        """`arrived`: gradients of its results; `given`: what it makes of them."""
        with governor.Reading() as reading, torch.no_grad():
            if any(map(_is_nonzero, arrived)):
                dead = any(each is not None for each in given) and not any(map(_is_nonzero, given))
                if dead and _is_wanted_back(arrived[0], end):
                    path, operation = key
                    term = self.terms.setdefault(
                        key, DeadTerm(operation=operation, kind=end.kind, choice=choice, path=list(path))
                    )
                    term.seen += 1  # type: ignore[union-attr, misc]  # it is not written yet
                else:
                    self.terms[key] = None
            reading.spent_by("learning")


def _is_nonzero(gradient: Any) -> bool:
    """What is not looked at lets it pass."""
    if gradient is None or type(gradient) is not torch.Tensor or not gpu.near(gradient):
        return gradient is not None
    return bool(gradient.detach().any())


def _suspects(root: Any) -> Iterator[Suspect]:
    """Operations between the loss and its layers that can stop a gradient."""
    waiting, seen, left = deque([Suspect(root, (), "")]), {root}, MAX_NODES
    while waiting and left:
        node, path, choice = waiting.popleft()
        left -= 1
        name, behind = name_of(node), list(before(node))
        parted = len(behind) > 1 and name not in PARTS
        if name in LAYERS or (parted and name not in DISTANCES):
            continue
        limits = name in LIMITS and len(behind) == 1 and not _is_layer(name, behind)
        if (limits or (choice and name in WRITES | DISTANCES)) and _is_small(node):
            yield Suspect(node, path, choice)
        choice = operation_of(node) if name in CHOICES else choice
        for place, (following, _) in enumerate(() if parted else node.next_functions):
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(Suspect(following, (*path, place), choice))


def _is_small(node: Any) -> bool:
    return prod(graph_reading.shape_of(node) or [MAX_ELEMENTS + 1]) <= MAX_ELEMENTS


def _is_layer(name: str, behind: list[Any]) -> bool:
    """The activation of a layer: units that are dead are looked for elsewhere."""
    while behind and kind_of(behind[0]) in VIEWS:
        behind = list(before(behind[0]))
    return name == "ReluBackward" and bool(behind) and name_of(behind[0]) in LAYERS


def _end(node: Any) -> End | None:
    """How it can stop a gradient; None: it does not."""
    name = name_of(node)
    if name in LIMITS:
        beyond = _beyond(node, name)
        return End("limit", *beyond) if beyond is not None else None
    if name in DISTANCES:
        return End("zero")
    return End("written") if _is_part(node, name) else None


def _beyond(node: Any, name: str) -> tuple[Any, Any] | None:
    """Where what it was given lies below its limit, and above it."""
    given, lowest, highest = saved(node, "_saved_self"), _limit(node, "min"), _limit(node, "max")
    if name == "ReluBackward":
        given = saved(node, "_saved_result")
        return None if given is None else (given <= 0, given < 0)
    if name in ("MinimumBackward", "MaximumBackward"):
        limit = saved(node, "_saved_other")
        given, limit = (given, limit) if node.next_functions[0][0] is not None else (limit, given)
        lowest, highest = (None, limit) if name == "MinimumBackward" else (limit, None)
    if given is None or (lowest is None and highest is None):
        return None
    nowhere = torch.zeros_like(given, dtype=torch.bool)
    return given < lowest if lowest is not None else nowhere, given > highest if highest is not None else nowhere


def _is_part(node: Any, name: str) -> bool:
    """Not all that it was given is written over: what is, is that on purpose."""
    if name == "MulBackward":
        factors = [saved(node, "_saved_self"), saved(node, "_saved_other")]
        factor = next((each for each in factors if each is not None and not each.requires_grad), None)
        return factor is not None and factor.dim() > 0 and bool(factor.any())
    mask = saved(node, "_saved_mask" if name == "MaskedFillBackward" else "_saved_condition")
    return mask is None or (bool(mask.any()) and not bool(mask.all()))


def _is_wanted_back(arrived: Any, end: End) -> bool:
    """All of it lies beyond a limit, if that is what stops it, and the loss wants it on the other side."""
    if end.kind != "limit":
        return True
    return bool(((end.below & (arrived < 0)) | (end.above & (arrived > 0)) | (arrived == 0)).all())


def _limit(node: Any, which: str) -> Any:
    """A number or a tensor; None where there is none."""
    for name in (f"_saved_{which}", f"_saved_{which}_val"):
        try:
            value = getattr(node, name, None)
        except RuntimeError:  # changed in place
            continue
        if type(value) in (int, float, torch.Tensor):
            return value
    return None
