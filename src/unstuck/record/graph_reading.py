"""What the autograd graph of a loss tells: the loss function and what went into it, activations, the parameters reached.

Read at sampled calls of backward, from what the graph keeps anyway; nothing is wrapped, nothing is recomputed. Where
saved-tensor hooks are in use (activation checkpointing) no saved tensor is touched: each read would run them.
"""

from __future__ import annotations

import sys
from collections import deque
from time import thread_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NODES = 6000
SECONDS = 0.01
LEAF = "AccumulateGrad"
PLAIN = ("Neg", "Mean", "Sum", "Div", "Mul", "Add", "Sub", "View", "Reshape", "Squeeze", "Unsqueeze", "ToCopy", "Clone")
"""Operations between a loss and the scalar that backward is called on."""
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
ACTIVATIONS = {
    "ReluBackward": "relu",
    "SigmoidBackward": "sigmoid",
    "TanhBackward": "tanh",
    "SoftmaxBackward": "softmax",
    "LeakyReluBackward": "leaky_relu",
    "EluBackward": "elu",
    "GeluBackward": "gelu",
    "SiluBackward": "silu",
}
hooks_used = False
"""Saved-tensor hooks were entered in this process."""


class Graph:
    """One reading."""

    __slots__ = ("activations", "capped", "compiled", "head", "leaves", "nodes")

    def __init__(self) -> None:
        self.leaves: list[Any] = []
        self.activations: list[tuple[int, str, Any]] = []
        """Number in the order of the forward pass, kind, node."""
        self.head: dict[str, Any] | None = None
        self.nodes = 0
        self.capped = self.compiled = False


def name_of(node: Any) -> str:
    """Without the digit that tells overloads apart."""
    name: str = node.name()
    return name.rstrip("0123456789")


def read(root: Any) -> Graph:
    """From the last node back to the leaves, nearest first."""
    found = Graph()
    until = thread_time() + SECONDS
    seen = {root}
    waiting = deque([root])
    while waiting:
        node = waiting.popleft()
        found.nodes += 1
        name = name_of(node)
        if name.endswith(LEAF):
            found.leaves.append(node.variable)
        elif name in ACTIVATIONS:
            found.activations.append((node._sequence_nr(), ACTIVATIONS[name], node))
        elif "CompiledFunction" in name:
            found.compiled = True
        if found.nodes >= NODES or (found.nodes & 127 == 0 and thread_time() > until):
            found.capped = True
            break
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)
    found.activations.sort(key=lambda entry: entry[0])
    found.head = _head(root)
    return found


# --- the loss function ---------------------------------------------------------------------------------------


def _head(root: Any) -> dict[str, Any] | None:
    """The loss function at the end of the graph, and what it was given; None where it is none that is known."""
    waiting, seen = deque([(root, 0)]), {root}
    while waiting:
        node, depth = waiting.popleft()
        name = name_of(node)
        if name in LOSSES:
            return _of_loss(node, LOSSES[name])
        if name == "LogSoftmaxBackward":  # cross entropy with probabilities as targets has no node of its own
            return None if depth == 0 else {"op": "log_softmax", "shape": shape_of(node), **_feeding(node)}
        if name == "PowBackward" or name == "AbsBackward":
            difference = _only(node)
            if difference is not None and name_of(difference) in ("SubBackward", "RsubBackward"):
                op = "squared" if name == "PowBackward" else "absolute"
                return {"op": op, "shape": shape_of(difference), **_operands(difference), **_feeding(difference)}
        if depth < 8 and name.removesuffix("Backward") in PLAIN:
            for following, _ in node.next_functions:
                if following is not None and following not in seen:
                    seen.add(following)
                    waiting.append((following, depth + 1))
    return None


def _of_loss(node: Any, op: str) -> dict[str, Any]:
    given = _only(node)
    head: dict[str, Any] = {"op": op, **_feeding(node)}
    if given is not None:
        head["shape"] = shape_of(given)
        if name_of(given) == "LogSoftmaxBackward":
            head = {"op": "cross_entropy" if op == "nll" else op, "shape": shape_of(given), **_feeding(given)}
            head["dim"] = _number(given, "_saved_dim")
        if name_of(given) == "ExpandBackward":
            beneath = _only(given)
            head["broadcast"] = [shape_of(beneath) if beneath is not None else None, shape_of(given)]
    return head


def _feeding(node: Any) -> dict[str, Any]:
    """The activation right in front of it, if there is one."""
    given = _only(node)
    depth = 0
    while given is not None and depth < 4:
        name = name_of(given)
        if name in ACTIVATIONS or name == "LogSoftmaxBackward":
            return {"after": ACTIVATIONS.get(name, "log_softmax"), "after_dim": _number(given, "_saved_dim")}
        if name.removesuffix("Backward") not in (
            "View",
            "Reshape",
            "Squeeze",
            "Unsqueeze",
            "ToCopy",
            "Clone",
            "Transpose",
            "Slice",
            "Select",
            "Expand",
        ):
            return {}
        given = _only(given)
        depth += 1
    return {}


def _operands(difference: Any) -> dict[str, Any]:
    """Shapes of the two sides of a difference whose result is larger than either: they broadcast against each other."""
    sides = [shape_of(following) for following, _ in difference.next_functions if following is not None]
    whole = shape_of(difference)
    if sides and whole and all(_size(side) < _size(whole) for side in sides if side is not None):
        return {"broadcast": [sides[0], whole]}
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


def shape_of(node: Any) -> list[int] | None:
    """Of what the operation gave."""
    known = getattr(node, "_input_metadata", None)
    try:
        return [int(size) for size in known[0].shape] if known else None
    except (AttributeError, IndexError, TypeError):
        return None


def _size(shape: list[int] | None) -> int:
    size = 1
    for part in shape or ():
        size *= part
    return size


def _number(node: Any, name: str) -> int | None:
    value = getattr(node, name, None)
    return int(value) - (1 << 64) * (int(value) >> 63) if isinstance(value, int) else None


def saved(node: Any, name: str) -> Any:
    """A tensor that the node keeps; None where that must not be touched, or is gone."""
    if hooks_used:
        return None
    try:
        value = getattr(node, name, None)
    except RuntimeError:  # freed by an earlier backward, or changed in place
        return None
    return value if type(value) in (sys.modules["torch"].Tensor, sys.modules["torch"].nn.Parameter) else None


def watch_hooks(module: Any) -> None:
    """`module` is torch.autograd.graph: notice when saved-tensor hooks are first entered."""
    kind = module.saved_tensors_hooks
    enter = kind.__enter__

    def __enter__(self: Any) -> Any:
        global hooks_used
        hooks_used = True
        return enter(self)

    kind.__enter__ = __enter__
