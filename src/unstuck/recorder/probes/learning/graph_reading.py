"""What the autograd graph of a loss tells: activations, parameters reached, and what its nodes have kept.

Read at sampled calls of backward, from what the graph keeps anyway; nothing is wrapped, nothing is recomputed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from time import thread_time
from typing import Any

import torch

from ...records.learning import ActivationKind

NODES = 6000
SECONDS = 0.01
NEAR = 24
LEAF = "AccumulateGrad"
ACTIVATIONS: dict[str, ActivationKind] = {
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


class Graph:
    """One reading."""

    def __init__(self) -> None:
        self.leaves: list[Any] = []
        self.activations: list[tuple[int, ActivationKind, Any]] = []
        """Number in the order of the forward pass, kind, node."""
        self.gates: set[Any] = set()
        """Nodes whose result is multiplied with another one."""
        self.flat: list[Any] = []
        """Nodes of operations whose slope is 0 everywhere."""
        self.nodes = 0
        self.capped = self.compiled = False

    def take(self, node: Any) -> None:
        self.nodes += 1
        name = name_of(node)
        if name.endswith(LEAF):
            self.leaves.append(node.variable)
        elif name in ACTIVATIONS:
            self.activations.append((node._sequence_nr(), ACTIVATIONS[name], node))
        elif name in FLAT:
            self.flat.append(node)
        elif "CompiledFunction" in name:
            self.compiled = True
        elif name == "MulBackward":
            factors = list(before(node))
            self.gates.update(factors if len(factors) > 1 else ())


class SavedTensors:
    """Tensors that nodes keep. Once saved-tensor hooks are in use (activation checkpointing) none is touched: each
    reading would run them."""

    def __init__(self) -> None:
        self.hooked = False

    def of(self, node: Any, name: str) -> Any:
        return None if self.hooked else saved(node, name)


def name_of(node: Any) -> str:
    """Without the digit that tells overloads apart."""
    name: str = node.name()
    return name.rstrip("0123456789")


def operation_of(node: Any) -> str:
    """As a person writes it: log, linalg_vector_norm."""
    kind = name_of(node).removesuffix("Backward")
    return "".join(f"_{c.lower()}" if c.isupper() and place else c.lower() for place, c in enumerate(kind))


def before(node: Any) -> Iterator[Any]:
    """The nodes whose results it was given."""
    return (following for following, _ in node.next_functions if following is not None)


def read(root: Any) -> Graph:
    """From the last node back to the leaves, nearest first."""
    found = Graph()
    until = thread_time() + SECONDS
    seen = {root}
    waiting = deque([root])
    while waiting:
        node = waiting.popleft()
        found.take(node)
        if found.nodes >= NODES or (found.nodes & 127 == 0 and thread_time() > until):
            found.capped = True
            break
        for following in before(node):
            if following not in seen:
                seen.add(following)
                waiting.append(following)
    found.activations.sort(key=lambda entry: entry[0])
    return found


def behind(root: Any, flat: list[Any]) -> list[Any]:
    """Leaves that the loss reaches only through these nodes."""
    reached = {id(leaf) for leaf in _leaves([root], {root, *flat})}
    return [leaf for leaf in _leaves(list(flat), set(flat)) if id(leaf) not in reached]


def _leaves(waiting: list[Any], seen: set[Any]) -> Iterator[Any]:
    while waiting:
        node = waiting.pop()
        if name_of(node).endswith(LEAF):
            yield node.variable
        for following in before(node):
            if following not in seen:
                seen.add(following)
                waiting.append(following)


def with_paths(root: Any, most: int) -> Iterator[tuple[Any, tuple[int, ...]]]:
    """Nodes with the way to each, nearest first: by it the same node is found in the graph of another step."""
    waiting: deque[tuple[Any, tuple[int, ...]]] = deque([(root, ())])
    seen = {root}
    while waiting and len(seen) < most:
        node, path = waiting.popleft()
        yield node, path
        for place, (following, _) in enumerate(node.next_functions):
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append((following, (*path, place)))


def at(node: Any, path: tuple[int, ...] | list[int]) -> Any:
    """The node at the end of a path; None where the graph has another shape."""
    for place in path:
        following = node.next_functions
        if place >= len(following) or following[place][0] is None:
            return None
        node = following[place][0]
    return node


def nearest_leaf(node: Any) -> Any:
    """The parameter that is fewest operations behind it; None if there is none near."""
    for here, _ in islice(with_paths(node, NODES), NEAR):
        if name_of(here).endswith(LEAF):
            return here.variable
    return None


def shape_of(node: Any) -> list[int] | None:
    """Of what the operation gave."""
    known = getattr(node, "_input_metadata", None)
    try:
        return [int(size) for size in known[0].shape] if known else None
    except (AttributeError, IndexError, TypeError):
        return None


def saved(node: Any, name: str) -> Any:
    """A tensor that the node keeps; None where that is gone."""
    try:
        value = getattr(node, name, None)
    except RuntimeError:  # freed by an earlier backward, or changed in place
        return None
    return value if type(value) in (torch.Tensor, torch.nn.Parameter) else None


def signed(value: Any) -> int | None:
    """Of a number that a node keeps as an unsigned one."""
    return int(value) - (1 << 64) * (int(value) >> 63) if type(value) is int else None
