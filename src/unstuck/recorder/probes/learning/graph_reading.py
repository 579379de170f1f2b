"""What the autograd graph of a loss shows: activations, parameters reached, and what its nodes have kept.

Read at sampled calls of backward, from what the graph keeps anyway; nothing is wrapped, nothing is recomputed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from time import thread_time
from typing import Any

import torch

from ...records.learning import ActivationKind
from . import kept_sizes, view_operations
from .naming import Names

MAX_NODES = 6000
READ_SECONDS = 0.01  # for reading one graph
MAX_PRODUCTS = 64
MAX_ZEROS = 4096  # numbers of a tensor, after which it counts as zeros
NEAR_NODES = 24  # in which the layer behind an activation is looked for
MAX_TERMS = 64  # nodes, from the loss on, in which a term is looked for
MAX_SIDE = 500  # nodes of such a term that are looked at
LEAF = "AccumulateGrad"
SUMS = ("AddBackward", "SubBackward")
NEAR = (*SUMS, "MulBackward", "DivBackward", "MeanBackward", "SumBackward")
DISTANCES = ("MseLossBackward", "SmoothL1LossBackward", "HuberLossBackward")  # between the two things they are given
SUMMING = (*SUMS, *DISTANCES)
IN_LOSS = (*NEAR, *DISTANCES, "PowBackward", "AbsBackward")
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
PRODUCTS = {  # of data with weights: which of what the node was given is the data, and under which name it keeps it
    "MmBackward": (0, "_saved_self"),
    "MvBackward": (0, "_saved_self"),
    "BmmBackward": (0, "_saved_self"),
    "AddmmBackward": (1, "_saved_mat1"),
    "ConvolutionBackward": (0, "_saved_input"),
}
LOOKUP = "EmbeddingBackward"
VIEWS = frozenset(f"{kind}Backward" for kind in (*view_operations.VIEWS, "ReshapeAlias"))
INDEXED = {"IndexBackward": "_saved_indices", "IndexSelectBackward": "_saved_index"}  # rows of a table, by number
DRAWN = ("normal", "bernoulli", "poisson")  # at random, from what is given: no gradient comes through, whatever it is
FLAT = {f"{name.title()}Backward": name for name in ("sign", "sgn", "round", "floor", "ceil", "trunc", *DRAWN)}
SOFTMAX = {"SoftmaxBackward": "softmax", "LogSoftmaxBackward": "log_softmax"}


Trained = Callable[[Any], bool]


class Graph:
    """One reading."""

    def __init__(self) -> None:
        self.leaves: list[Any] = []
        self.activations: list[tuple[int, ActivationKind, Any]] = []
        """Number in the order of the forward pass, kind, node."""
        self.gates: set[Any] = set()  # nodes whose result is multiplied with another one
        self.flat: list[Any] = []  # nodes of operations whose slope is 0 everywhere
        self.products: list[Any] = []  # nodes that multiply what has no graph with what has one
        self.lookups: list[Any] = []  # nodes of embeddings
        self.views: list[Any] = []  # nodes that give the same numbers another shape
        self.indexed: list[Any] = []  # nodes that take rows of a leaf
        self.last: Any = None  # the node nearest to the loss that multiplies with weights
        self.nodes = 0
        self.capped = self.compiled = False

    def take(self, node: Any) -> None:
        self.nodes += 1
        name = name_of(node)
        if name.endswith(LEAF):
            self.leaves.append(node.variable)
        elif flat_operation(node) is not None:
            self.flat.append(node)
        elif name in ACTIVATIONS:
            self.activations.append((node._sequence_nr(), ACTIVATIONS[name], node))
        elif name in PRODUCTS:
            self.last = self.last or node
            if node.next_functions[PRODUCTS[name][0]][0] is None:
                self.products.append(node)
        elif name in VIEWS:
            self.views.append(node)
        elif name == LOOKUP:
            self.lookups.append(node)
        elif name in INDEXED and is_leaf(node.next_functions[0][0]):
            self.indexed.append(node)
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


def kind_of(node: Any) -> str:
    """The same, as torch calls the operation."""
    return name_of(node).removesuffix("Backward")


def operation_of(node: Any) -> str:
    """As a person writes it: log, linalg_vector_norm."""
    kind = kind_of(node)
    return "".join(f"_{c.lower()}" if c.isupper() and index else c.lower() for index, c in enumerate(kind))


def before(node: Any) -> Iterator[Any]:
    """The nodes whose results it was given."""
    return (following for following, _ in node.next_functions if following is not None)


def nodes(starts: Iterable[Any], seen: set[Any]) -> Iterator[Any]:
    """From these back to the leaves, nearest first; not through nodes that were `seen`."""
    waiting = deque(starts)
    while waiting:
        node = waiting.popleft()
        yield node
        for following in before(node):
            if following not in seen:
                seen.add(following)
                waiting.append(following)


def nodes_near(root: Any, most: int, kinds: tuple[str, ...]) -> Iterator[Any]:
    """Nodes from the root on, through none but those of these kinds."""
    waiting, left = [root], most
    while waiting and left:
        node = waiting.pop()
        left -= 1
        if name_of(node) in kinds:
            yield node
            waiting.extend(before(node))


def lacks_a_term(root: Any, trained: Trained, deep: bool) -> bool:
    """One side of an addition near the loss leads to nothing that is trained: it is a number, mostly. `deep`: or what
    stands in a distance or a power does, as every target."""
    sums = (node for node in nodes_near(root, MAX_TERMS, IN_LOSS if deep else NEAR) if name_of(node) in SUMMING)
    return any(not reaches(part, trained) for node in sums for part, _ in node.next_functions)


def reaches(node: Any, trained: Trained) -> bool:
    """A graph ends in something that is trained, or is too large to tell."""
    if node is None:
        return False
    behind_it = enumerate(nodes([node], {node}))
    return any(place >= MAX_SIDE or (is_leaf(found) and trained(found.variable)) for place, found in behind_it)


def read(root: Any) -> Graph:
    found = Graph()
    until = thread_time() + READ_SECONDS
    for node in nodes([root], {root}):
        found.take(node)
        if found.nodes >= MAX_NODES or (found.nodes & 127 == 0 and thread_time() > until):
            found.capped = True
            break
    found.activations.sort(key=lambda activation: activation[0])
    return found


def data_of(graph: Graph, saved_tensors: SavedTensors) -> Any:
    """The largest tensor without a graph that is multiplied with weights, but for the zeros in which a recurrent layer
    begins; else the most numbers of rows that are looked up in them: what a model of plain tensors is given."""
    given = [saved_tensors.of(node, PRODUCTS[name_of(node)][1]) for node in graph.products[:MAX_PRODUCTS]]
    given = [tensor for tensor in given if tensor is not None and not _is_zero(tensor)]
    given = given or [saved_tensors.of(node, "_saved_indices") for node in graph.lookups[:MAX_PRODUCTS]]
    return max((tensor for tensor in given if tensor is not None), key=lambda tensor: tensor.numel(), default=None)


def _is_zero(tensor: Any) -> bool:
    """As far as it is looked at."""
    if tensor.layout is not torch.strided or not tensor.is_cpu or not tensor.dim() or not tensor.numel():
        return False
    rows = max(1, MAX_ZEROS * len(tensor) // tensor.numel())
    return not bool(tensor[:rows].any())


def rows_asked(graph: Graph, saved_tensors: SavedTensors) -> list[Any]:
    """The numbers of the rows that are taken from tables of plain tensors (`table[numbers]`), where nothing else shows
    what the model is given."""
    nodes = [] if graph.products or graph.lookups else graph.indexed[:MAX_PRODUCTS]
    kept = [saved_tensors.of(node, INDEXED[name_of(node)]) for node in nodes]
    return [tensor for tensor in kept if tensor is not None]


def is_leaf(node: Any) -> bool:
    return node is not None and name_of(node).endswith(LEAF)


def only_behind(root: Any, flat: list[Any]) -> list[Any]:
    """Leaves that the loss reaches only through these nodes."""
    reached = {id(node.variable) for node in nodes([root], {root, *flat}) if is_leaf(node)}
    after = [node.variable for node in nodes(flat, set(flat)) if is_leaf(node)]
    return [leaf for leaf in after if id(leaf) not in reached]


def flat_operation(node: Any) -> str | None:
    """What it is, if its slope is 0 everywhere: a step, or a softmax over a dimension of one element, always 1."""
    name = name_of(node)
    return FLAT.get(name) or (SOFTMAX[name] if name in SOFTMAX and _over_one(node) else None)


def _over_one(node: Any) -> bool:
    """Of several rows. Attention to one thing, by head or by query, has them in more dimensions: that is no mistake."""
    shape, dim = shape_of(node), signed(getattr(node, "_saved_dim", None))
    if shape is None or dim is None or len(shape) not in (2, 3):
        return False
    at = dim % len(shape)
    return at > 0 and shape[at] == 1 and shape[0] > 1 and (len(shape) == 2 or max(shape[1:]) > 1)


def drawn(flat: list[Any]) -> Any:
    """One of these nodes that draws at random."""
    return next((node for node in flat if flat_operation(node) in DRAWN), None)


def behind(node: Any) -> list[Any]:
    return [found.variable for found in islice(nodes([node], {node}), MAX_NODES) if is_leaf(found)]


def beside(graph: Graph) -> set[int]:
    """Leaves, by identity, whose gradient does not come through the last layer: another branch of the loss."""
    if graph.last is None or graph.capped:
        return set()
    return {id(leaf) for leaf in graph.leaves} - {id(leaf) for leaf in behind(graph.last)}


def with_paths(root: Any, most: int) -> Iterator[tuple[Any, tuple[int, ...]]]:
    """Nodes with the way to each, nearest first: by it the same node is found in the graph of another step."""
    waiting: deque[tuple[Any, tuple[int, ...]]] = deque([(root, ())])
    seen = {root}
    while waiting and len(seen) < most:
        node, path = waiting.popleft()
        yield node, path
        for index, (following, _) in enumerate(node.next_functions):
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append((following, (*path, index)))


def at(node: Any, path: tuple[int, ...] | list[int]) -> Any:
    """The node at the end of a path; None where the graph has another shape."""
    for index in path:
        following = node.next_functions
        if index >= len(following) or following[index][0] is None:
            return None
        node = following[index][0]
    return node


def layer_behind(node: Any, names: Names) -> str:
    """The layer whose output it is applied to: that of the nearest parameter behind it."""
    leaf = next((near for near in islice(nodes([node], {node}), NEAR_NODES) if is_leaf(near)), None)
    return names.name(leaf.variable).rpartition(".")[0] if leaf is not None else ""


def shape_of(node: Any) -> list[int] | None:
    """Of what the operation gave."""
    known = getattr(node, "_input_metadata", None)
    try:
        return [int(size) for size in known[0].shape] if known is not None else kept_sizes.shape(node)
    except (AttributeError, IndexError, TypeError):
        return None


def saved(node: Any, name: str) -> Any:
    """A tensor that the node keeps; None where that is gone."""
    try:
        value = getattr(node, name, None)
    except RuntimeError:  # freed by an earlier backward, or changed in place
        return None
    value = value[0] if type(value) is tuple and value else value  # of several indices the first
    return value if type(value) in (torch.Tensor, torch.nn.Parameter) else None


def signed(value: Any) -> int | None:
    """Of a number that a node keeps as an unsigned one."""
    return kept_sizes.signed(value) if type(value) is int else None
