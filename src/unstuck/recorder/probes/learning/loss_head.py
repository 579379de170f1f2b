"""The loss function at the end of a graph, and what it was given: target, prediction, the softmax in front of it."""

from __future__ import annotations

import sys
from collections import deque

from . import graph_reading
from .graph_reading import ACTIVATIONS, LEAF, name_of, saved, shape_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SMALL = 1 << 12
"""Numbers; a larger output is not computed once more."""
PLAIN = (
    "Neg",
    "Mean",
    "Sum",
    "Div",
    "Mul",
    "Add",
    "Sub",
    "View",
    "Reshape",
    "Squeeze",
    "Unsqueeze",
    "ToCopy",
    "Clone",
    "Sqrt",
)
"""Operations between a loss and the scalar that backward is called on."""
SIGNED = ("Neg", "Mean", "Sum", "Div", "Mul", "View", "Reshape", "Squeeze", "Unsqueeze", "ToCopy", "Clone")
"""… that keep its sign, but for a minus that is written: no second term is added."""
GIVEN = ("nll", "mse", "smooth_l1", "huber", "bce", "bce_logits")
VIEWS = ("View", "Reshape", "UnsafeView", "Squeeze", "Unsqueeze", "ToCopy", "Clone", "Transpose", "T", "Permute")
PARTS = ("Slice", "Select", "Expand")
LOSSES = {
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


def find(root: Any) -> dict[str, Any] | None:
    """The loss function at the end of the graph, and what it was given; None where it is none that is known.

    `given`: target, prediction, dimension of the classes, class to ignore. `bare`: the loss is its plain mean.
    """
    waiting: deque[tuple[Any, list[Any]]] = deque([(root, [])])
    seen = {root}
    head: dict[str, Any] | None
    while waiting:
        node, above = waiting.popleft()
        name = name_of(node)
        if name in LOSSES:
            head = _of_loss(node, LOSSES[name], bare=not above)
        elif name == "LogSoftmaxBackward":  # cross entropy with probabilities as targets has no node of its own
            if not above:
                return None
            head = _of_probabilities(node, above)
        else:
            head = _of_difference(node, name)
        if head is not None:
            names = [name_of(each).removesuffix("Backward") for each in above]
            if head["op"] == "squared":
                head["bare"] = names == ["Mean"]
            head["signed"] = all(each in SIGNED for each in names)
            return head
        if len(above) < 8 and name.removesuffix("Backward") in PLAIN:
            for following, _ in node.next_functions:
                if following is not None and following not in seen:
                    seen.add(following)
                    waiting.append((following, [*above, node]))
    return None


def _of_loss(node: Any, op: str, *, bare: bool) -> dict[str, Any]:
    given = _only(node)
    head: dict[str, Any] = {"op": op, **_feeding(node)}
    if given is not None:
        head["shape"] = shape_of(given)
        if name_of(given) == "LogSoftmaxBackward":
            head = {"op": "cross_entropy" if op == "nll" else op, "shape": shape_of(given), **_feeding(given)}
            head["dim"] = _number(given, "_saved_dim")
        elif op == "nll":
            beneath = _through_views(given)
            if beneath is not None and name_of(beneath) == "LogSoftmaxBackward":
                head["op"], head["dim"] = "cross_entropy", _number(beneath, "_saved_dim")
                head["shape"] = shape_of(beneath)
                head = {"after": "", **head, **_feeding(beneath)} if _feeding(beneath) else {**head, "after": ""}
        if name_of(given) == "ExpandBackward":
            beneath = _only(given)
            head["broadcast"] = [shape_of(beneath) if beneath is not None else None, shape_of(given)]
    weight = saved(node, "_saved_weight")
    head["bare"] = bare and weight is None and getattr(node, "_saved_reduction", 1) == 1
    head["weighted"] = weight is not None or saved(node, "_saved_pos_weight") is not None
    ignore = _number(node, "_saved_ignore_index")
    if op in GIVEN:
        head["given"] = (saved(node, "_saved_target"), saved(node, "_saved_self"), 1, ignore)
    return head


def _of_probabilities(node: Any, above: list[Any]) -> dict[str, Any]:
    """Sum of target times log softmax: the product keeps the target."""
    dim = _number(node, "_saved_dim")
    head: dict[str, Any] = {"op": "log_softmax", "shape": shape_of(node), "dim": dim, **_feeding(node)}
    product = above[-1]
    sides = [following for following, _ in product.next_functions]
    if name_of(product) == "MulBackward" and len(sides) == 2 and None in sides:
        target = saved(product, "_saved_other" if sides[0] is node else "_saved_self")
        result = saved(node, "_saved_result")
        if target is not None and result is not None and target.shape == result.shape:
            head["given"] = (target, result, dim or 0, None)
    head["bare"] = [name_of(each) for each in above] == ["DivBackward", "NegBackward", "SumBackward", "MulBackward"]
    return head


def _of_difference(node: Any, name: str) -> dict[str, Any] | None:
    """A loss written out: the square or the absolute value of a difference."""
    if name != "PowBackward" and name != "AbsBackward":
        return None
    difference = _only(node)
    if difference is None or name_of(difference) not in ("SubBackward", "RsubBackward"):
        return None
    op = "squared" if name == "PowBackward" else "absolute"
    head = {"op": op, "shape": shape_of(difference), **_operands(difference), **_feeding(difference)}
    sides = [following for following, _ in difference.next_functions]
    prediction = _output(next((side for side in sides if side is not None), None)) if None in sides else None
    value = saved(node, "_saved_self")
    if prediction is not None and value is not None and prediction.shape == value.shape:
        target = prediction - value if sides[0] is not None else prediction + value
        head["given"] = (sys.modules["torch"].round(target, decimals=4), prediction, 1, None)
    return head


def _output(node: Any) -> Any:
    """What the last layer gave: an activation keeps it, and of a small linear layer it is computed once more."""
    shape = shape_of(node) if node is not None else None
    beneath = _through_views(node)
    if beneath is None or shape is None or _size(shape) != _size(shape_of(beneath)):
        return None
    if name_of(beneath) in ("SigmoidBackward", "TanhBackward", "ReluBackward"):
        result = saved(beneath, "_saved_result")
        return result.reshape(shape) if result is not None else None
    if name_of(beneath) != "AddmmBackward" or graph_reading.hooks_used:
        return None
    bias, _, right = (following for following, _ in beneath.next_functions)
    left = saved(beneath, "_saved_mat1")
    if bias is None or right is None or left is None or not name_of(bias).endswith(LEAF) or _size(shape) > SMALL:
        return None
    weight = _only(right) if name_of(right) == "TBackward" else None
    if weight is None or not name_of(weight).endswith(LEAF) or left.numel() > SMALL * 16:
        return None
    torch = sys.modules["torch"]
    if left.dtype != torch.float32 or weight.variable.dtype != torch.float32 or left.device != weight.variable.device:
        return None
    return torch.addmm(bias.variable.detach(), left.detach(), weight.variable.detach().t()).reshape(shape)


def _feeding(node: Any) -> dict[str, Any]:
    """The activation right in front of it, if there is one."""
    given = _through_views(_only(node))
    if given is None:
        return {}
    name = name_of(given)
    if name in ACTIVATIONS or name in ("LogSoftmaxBackward", "LogBackward"):
        after = ACTIVATIONS.get(name) or ("log" if name == "LogBackward" else "log_softmax")
        return {"after": after, "after_dim": _number(given, "_saved_dim"), "after_shape": shape_of(given)}
    return {}


def _through_views(node: Any) -> Any:
    """Past what only gives another shape."""
    depth = 0
    while node is not None and depth < 5 and name_of(node).removesuffix("Backward") in (*VIEWS, *PARTS):
        node = _only(node)
        depth += 1
    return node


def _operands(difference: Any) -> dict[str, Any]:
    """The side of a difference that has a gradient, where the result is larger than it: it was broadcast."""
    sides = [following for following, _ in difference.next_functions if following is not None]
    if len(sides) != 1:  # both come from the model: distances between its outputs
        return {}
    side = _only(sides[0]) if name_of(sides[0]) == "ExpandBackward" else sides[0]
    shape, whole = shape_of(side) if side is not None else None, shape_of(difference)
    if shape is not None and whole and _size(shape) < _size(whole):
        return {"broadcast": [shape, whole]}
    return {}


def _only(node: Any) -> Any:
    """What it was given that has a gradient, if that is one thing."""
    given = [following for following, _ in node.next_functions if following is not None]
    return (
        given[0]
        if len(given) == 1
        else given[0]
        if given and name_of(node) in ("SubBackward", "RsubBackward")
        else None
    )


def _size(shape: list[int] | None) -> int:
    size = 1
    for part in shape or ():
        size *= part
    return size


def _number(node: Any, name: str) -> int | None:
    value = getattr(node, name, None)
    return int(value) - (1 << 64) * (int(value) >> 63) if isinstance(value, int) else None
