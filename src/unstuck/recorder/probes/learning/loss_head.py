"""The loss function at the end of a graph, and what it was given: target, prediction, the softmax in front of it."""

from __future__ import annotations

from collections import deque
from typing import Any, Literal

import torch

from ...records.learning import ActivationKind, LossOp
from . import graph_reading
from .graph_reading import ACTIVATIONS, LEAF, SavedTensors, name_of, shape_of, signed

SMALL = 1 << 12
"""Numbers; a larger output is not computed once more."""
SIGNED = (
    "Neg", "Mean", "Sum", "Div", "Mul", "View", "Reshape", "Squeeze", "Unsqueeze", "ToCopy", "Clone",
)  # fmt: skip
"""Operations between a loss and the scalar that backward is called on that keep its sign, but for a minus that is
written: no second term is added."""
PLAIN = (*SIGNED, "Add", "Sub", "Sqrt")
"""All that may lie between the two."""
FURTHEST = 8
GIVEN = ("nll", "mse", "smooth_l1", "huber", "bce", "bce_logits")
VIEWS = (
    "View", "Reshape", "UnsafeView", "Squeeze", "Unsqueeze", "ToCopy", "Clone", "Transpose", "T", "Permute",
    "Slice", "Select", "Expand",
)  # fmt: skip
"""What only gives another shape, or takes a part."""
LOSSES: dict[str, LossOp] = {
    "NllLossBackward": "nll",
    "NllLoss2DBackward": "nll",
    "NllLossNdBackward": "nll",
    "MseLossBackward": "mse",
    "SmoothL1LossBackward": "smooth_l1",
    "HuberLossBackward": "huber",
    "BinaryCrossEntropyWithLogitsBackward": "bce_logits",
    "BinaryCrossEntropyBackward": "bce",
    "KlDivBackward": "kl_div",
    "CtcLossBackward": "ctc",
}
PROBABILITIES = ["DivBackward", "NegBackward", "SumBackward", "MulBackward"]
"""What cross entropy with probabilities as targets is made of, above the log softmax."""


class Given:
    """Target and prediction of a loss function, as its node keeps them."""

    def __init__(self, target: Any, prediction: Any, dim: int = 1, ignored: int | None = None) -> None:
        self.target, self.prediction = target, prediction
        self.dim = dim
        """Of the classes."""
        self.ignored = ignored
        """The class to ignore."""


class Head:
    """One loss function, as it was found; the fields are those of records.learning.LossHead."""

    def __init__(self, op: LossOp, node: Any) -> None:
        self.op = op
        self.shape = shape_of(node) or []
        self.dim: int | None = None
        self.after: ActivationKind | Literal[""] = ""
        self.after_dim: int | None = None
        self.after_shape: list[int] = []
        self.broadcast: tuple[list[int], list[int]] | None = None
        self.bare = self.signed = self.weighted = False
        self.given: Given | None = None

    def fed_by(self, node: Any) -> None:
        """The activation right in front of a node, if there is one."""
        beneath = _through_views(_only(node))
        name = name_of(beneath) if beneath is not None else ""
        self.after, self.after_dim, self.after_shape = "", None, []
        if name == "LogBackward" or name == "LogSoftmaxBackward":
            self.after = "log" if name == "LogBackward" else "log_softmax"
        elif name in ACTIVATIONS:
            self.after = ACTIVATIONS[name]
        if self.after:
            self.after_dim, self.after_shape = _number(beneath, "_saved_dim"), shape_of(beneath) or []


def find(root: Any, saved: SavedTensors) -> Head | None:
    """The loss function at the end of the graph; None where it is none that is known."""
    waiting: deque[tuple[Any, list[Any]]] = deque([(root, [])])
    seen = {root}
    while waiting:
        node, above = waiting.popleft()
        name = name_of(node)
        if name == "LogSoftmaxBackward" and not above:
            return None
        head = _at(node, name, above, saved)
        if head is not None:
            head.signed = all(name_of(each).removesuffix("Backward") in SIGNED for each in above)
            return head
        if len(above) < FURTHEST and name.removesuffix("Backward") in PLAIN:
            for following in graph_reading.before(node):
                if following not in seen:
                    seen.add(following)
                    waiting.append((following, [*above, node]))
    return None


def _at(node: Any, name: str, above: list[Any], saved: SavedTensors) -> Head | None:
    if name in LOSSES:
        return _of_loss(node, LOSSES[name], saved, alone=not above)
    if name == "LogSoftmaxBackward":  # cross entropy with probabilities as targets has no node of its own
        return _of_probabilities(node, above, saved)
    if name == "PowBackward" or name == "AbsBackward":
        head = _of_difference(node, name, saved)
        if head is not None and head.op == "squared":
            head.bare = [name_of(each) for each in above] == ["MeanBackward"]
        return head
    return None


def _of_loss(node: Any, op: LossOp, saved: SavedTensors, *, alone: bool) -> Head:
    given = _only(node)
    head = Head(op, given)
    head.fed_by(node)
    beneath = _through_views(given) if op == "nll" else given
    if beneath is not None and name_of(beneath) == "LogSoftmaxBackward":
        head.op = "cross_entropy" if op == "nll" else op
        head.shape, head.dim = shape_of(beneath) or [], _number(beneath, "_saved_dim")
        head.fed_by(beneath)
    if given is not None and name_of(given) == "ExpandBackward":
        inner = _only(given)
        head.broadcast = (shape_of(inner) or [] if inner is not None else [], shape_of(given) or [])
    weight = saved.of(node, "_saved_weight")
    head.bare = alone and weight is None and getattr(node, "_saved_reduction", 1) == 1
    head.weighted = weight is not None or saved.of(node, "_saved_pos_weight") is not None
    if op in GIVEN:
        ignored = _number(node, "_saved_ignore_index")
        head.given = Given(saved.of(node, "_saved_target"), saved.of(node, "_saved_self"), ignored=ignored)
    return head


def _of_probabilities(node: Any, above: list[Any], saved: SavedTensors) -> Head:
    """Sum of target times log softmax: the product keeps the target."""
    head = Head("log_softmax", node)
    head.dim = _number(node, "_saved_dim")
    head.fed_by(node)
    product = above[-1]
    sides = [following for following, _ in product.next_functions]
    if name_of(product) == "MulBackward" and len(sides) == 2 and None in sides:
        target = saved.of(product, "_saved_other" if sides[0] is node else "_saved_self")
        result = saved.of(node, "_saved_result")
        if target is not None and result is not None and target.shape == result.shape:
            head.given = Given(target, result, head.dim or 0)
    head.bare = [name_of(each) for each in above] == PROBABILITIES
    return head


def _of_difference(node: Any, name: str, saved: SavedTensors) -> Head | None:
    """A loss written out: the square or the absolute value of a difference."""
    difference = _only(node)
    if difference is None or name_of(difference) not in ("SubBackward", "RsubBackward"):
        return None
    head = Head("squared" if name == "PowBackward" else "absolute", difference)
    head.broadcast = _blown_up(difference)
    head.fed_by(difference)
    sides = [following for following, _ in difference.next_functions]
    prediction = _output(next((side for side in sides if side is not None), None), saved) if None in sides else None
    value = saved.of(node, "_saved_self")
    if prediction is not None and value is not None and prediction.shape == value.shape:
        target = prediction - value if sides[0] is not None else prediction + value
        head.given = Given(torch.round(target, decimals=4), prediction)
    return head


def _output(node: Any, saved: SavedTensors) -> Any:
    """What the last layer gave: an activation keeps it, and of a small linear layer it is computed once more."""
    shape = shape_of(node) if node is not None else None
    beneath = _through_views(node)
    if beneath is None or shape is None or _size(shape) != _size(shape_of(beneath)):
        return None
    if name_of(beneath) in ("SigmoidBackward", "TanhBackward", "ReluBackward"):
        result = saved.of(beneath, "_saved_result")
        return result.reshape(shape) if result is not None else None
    if name_of(beneath) != "AddmmBackward" or _size(shape) > SMALL:
        return None
    bias, _, right = (following for following, _ in beneath.next_functions)
    left: Any = saved.of(beneath, "_saved_mat1")
    weight: Any = _only(right) if right is not None else None
    if left is None or left.numel() > SMALL * 16 or not (_is_leaf(bias) and _is_leaf(weight)):
        return None
    if name_of(right) != "TBackward" or not _computable(left, weight.variable):
        return None
    return torch.addmm(bias.variable.detach(), left.detach(), weight.variable.detach().t()).reshape(shape)


def _is_leaf(node: Any) -> bool:
    return node is not None and name_of(node).endswith(LEAF)


def _computable(left: Any, weight: Any) -> bool:
    return bool(left.dtype == torch.float32 == weight.dtype and left.device == weight.device)


def _blown_up(difference: Any) -> tuple[list[int], list[int]] | None:
    """The side of a difference that has a gradient, where the result is larger than it: it was broadcast."""
    sides = list(graph_reading.before(difference))
    if len(sides) != 1:  # both come from the model: distances between its outputs
        return None
    side = _only(sides[0]) if name_of(sides[0]) == "ExpandBackward" else sides[0]
    shape, whole = shape_of(side) if side is not None else None, shape_of(difference)
    return (shape, whole) if shape is not None and whole and _size(shape) < _size(whole) else None


def _through_views(node: Any) -> Any:
    """Past what only gives another shape."""
    depth = 0
    while node is not None and depth < 5 and name_of(node).removesuffix("Backward") in VIEWS:
        node = _only(node)
        depth += 1
    return node


def _only(node: Any) -> Any:
    """What it was given that has a gradient, if that is one thing; of a difference the first."""
    given = list(graph_reading.before(node))
    if len(given) == 1 or (given and name_of(node) in ("SubBackward", "RsubBackward")):
        return given[0]
    return None


def _size(shape: list[int] | None) -> int:
    size = 1
    for part in shape or ():
        size *= part
    return size


def _number(node: Any, name: str) -> int | None:
    return signed(getattr(node, name, None))
