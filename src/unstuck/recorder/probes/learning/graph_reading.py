"""What the autograd graph of a loss tells: activations, parameters reached, and what its nodes have kept.

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
FLAT = {f"{name.title()}Backward": name for name in ("sign", "sgn", "round", "floor", "ceil", "trunc")}
hooks_used = False
"""Saved-tensor hooks were entered in this process."""


class Graph:
    """One reading."""

    __slots__ = ("activations", "capped", "compiled", "flat", "gates", "leaves", "nodes")

    def __init__(self) -> None:
        self.leaves: list[Any] = []
        self.activations: list[tuple[int, str, Any]] = []
        """Number in the order of the forward pass, kind, node."""
        self.gates: set[Any] = set()
        """Nodes whose result is multiplied with another one."""
        self.flat: list[Any] = []
        """Nodes of operations whose slope is 0 everywhere."""
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
        elif name in FLAT:
            found.flat.append(node)
        elif "CompiledFunction" in name:
            found.compiled = True
        if found.nodes >= NODES or (found.nodes & 127 == 0 and thread_time() > until):
            found.capped = True
            break
        if name == "MulBackward":
            factors = [following for following, _ in node.next_functions if following is not None]
            found.gates.update(factors if len(factors) > 1 else ())
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)
    found.activations.sort(key=lambda entry: entry[0])
    return found


def behind(root: Any, flat: list[Any]) -> list[Any]:
    """Leaves that the loss reaches only through these nodes."""
    seen, waiting = {root, *flat}, [root]
    reached = set()
    while waiting:
        node = waiting.pop()
        if name_of(node).endswith(LEAF):
            reached.add(id(node.variable))
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)
    found, waiting, seen = [], list(flat), set(flat)
    while waiting:
        node = waiting.pop()
        if name_of(node).endswith(LEAF) and id(node.variable) not in reached:
            found.append(node.variable)
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)
    return found


def shape_of(node: Any) -> list[int] | None:
    """Of what the operation gave."""
    known = getattr(node, "_input_metadata", None)
    try:
        return [int(size) for size in known[0].shape] if known else None
    except (AttributeError, IndexError, TypeError):
        return None


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
