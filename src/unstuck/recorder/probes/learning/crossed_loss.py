"""A loss of the script's own in which every prediction meets the target of every sample: [N, 1] and [N] give [N, N].

Looked for from the loss backwards, through operations that keep the shape, whatever they compute: squares, a Huber loss
of two branches, a likelihood. Distances between two outputs of the model, and what is compared by a row at a time
(minima, sums over one dimension), are no such loss.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from . import graph_reading
from .graph_reading import SavedTensors, is_leaf, kind_of, shape_of
from .view_operations import COPIES, SHAPES

MAX_NODES = 96
MIN_SAMPLES = 4  # fewer may be the outputs of one sample
TO_A_NUMBER = (
    "Mean", "Sum", "Neg", "Add", "Sub", "Rsub", "Mul", "Div", "Sqrt", "View", "Squeeze", "Clone", "ToCopy",
)  # fmt: skip
EACH = (
    "Add", "Sub", "Rsub", "Mul", "Div", "Neg", "Pow", "Abs", "Where", "SWhere", "Clamp", "ClampMin", "ClampMax",
    "Maximum", "Minimum", "Log", "Log1P", "Sqrt", "Relu", "Softplus", "Tanh", "Sigmoid", "LogSigmoid", "Clone",
    "ToCopy",
)  # fmt: skip
"""Operations on each element for itself."""
MEET = ("Sub", "Rsub", "Add", "Mul", "Div")
VIEWS = SHAPES | COPIES


def find(root: Any, saved: SavedTensors) -> tuple[list[int], list[int]] | None:
    """Shape of the prediction, and the larger one it gets."""
    waiting, seen = deque([root]), {root}
    while waiting and len(seen) < MAX_NODES:
        node = waiting.popleft()
        kind, shape = kind_of(node), shape_of(node) or []
        if not _is_number(shape):
            if kind not in EACH or not _is_square(shape):
                continue
            prediction = _crossed(node, kind, shape, saved)
            if prediction is not None:
                return prediction, shape
        elif kind not in TO_A_NUMBER:
            continue
        for following in graph_reading.before(node):
            if following not in seen:
                seen.add(following)
                waiting.append(following)
    return None


def _is_number(shape: list[int]) -> bool:
    return all(size == 1 for size in shape)


def _is_square(shape: list[int]) -> bool:
    return len(shape) == 2 and shape[0] == shape[1] >= MIN_SAMPLES


def _crossed(node: Any, kind: str, shape: list[int], saved: SavedTensors) -> list[int] | None:
    """The one side that has a graph, where it has one value for each sample and the other is no matrix."""
    sides = [following for following, _ in node.next_functions]
    given = [side for side in sides if side is not None]
    if kind not in MEET or len(sides) != 2 or len(given) != 1:
        return None
    own = shape_of(given[0])
    if own not in ([shape[0], 1], [shape[0]]) or _is_parameter(given[0]):
        return None
    name = "_saved_other" if sides[0] is not None else "_saved_self"
    other = saved.of(node, name) if kind in ("Mul", "Div") else None
    return None if other is not None and other.numel() > shape[0] else own


def _is_parameter(node: Any) -> bool:
    """Nothing but another shape lies between it and a leaf: an offset for each row, not a prediction."""
    for _ in range(4):
        if is_leaf(node):
            return True
        following = list(graph_reading.before(node))
        if kind_of(node) not in VIEWS or len(following) != 1:
            return False
        node = following[0]
    return False
