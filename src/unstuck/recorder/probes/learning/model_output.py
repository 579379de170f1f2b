"""The output of a model, as the graph of its loss keeps it, or computed once more from what that keeps."""

from __future__ import annotations

from math import prod
from typing import Any, Literal

import torch

from ... import gpu
from ...records.learning import ActivationKind
from . import graph_reading
from .graph_reading import SavedTensors, is_leaf, kind_of, name_of, shape_of
from .view_operations import COPIES, PICKS, SHAPES

MAX_RECOMPUTED = 1 << 12  # elements; a larger output is not computed once more
SHAPES_KEPT = ("View", "UnsafeView", "Reshape", "Squeeze", "Unsqueeze")
"""What leaves the numbers in their order."""
VIEWS = SHAPES | PICKS | COPIES | {"ToCopy"}
"""What only gives another shape, or takes a part."""
JOINS = ("StackBackward", "CatBackward")
MAX_JOINED = 8  # parts of what is put together, of which each must be a hidden state
MAX_MULTIPLIED = 1 << 16  # the same of one that an activation gave, and that was then multiplied
MAX_FACTORS = 3  # with which it was, one after another
BOUNDED: tuple[ActivationKind, ...] = ("sigmoid", "tanh", "softmax")
MAX_JOINS = 8  # such nodes, and views, on the way to it
LAYER_KINDS: dict[int, ActivationKind] = {1: "tanh", 2: "lstm", 3: "gru"}
FUSED_LAYERS = {"MkldnnRnnLayerBackward": LAYER_KINDS, "CudnnRnnBackward": LAYER_KINDS}
FUSED_CELLS: dict[str, ActivationKind] = {"ThnnFusedGruCellBackward": "gru", "ThnnFusedLstmCellBackward": "lstm"}
"""Recurrent layers and cells that are one node; what layers give, by their mode."""
GRU_FACTORS = ("SubBackward", "SigmoidBackward")
PLAIN_PRODUCTS = {"MmBackward": ("_saved_self", "_saved_mat2"), "MvBackward": ("_saved_self", "_saved_vec")}


def output(node: Any, saved: SavedTensors) -> Any:
    """What the last layer gave: an activation keeps it, and of a small linear layer it is computed once more."""
    shape = shape_of(node) if node is not None else None
    beneath = through_views(node)
    if beneath is None or shape is None or size_of(shape) != size_of(shape_of(beneath)):
        return None
    if name_of(beneath) in ("SigmoidBackward", "TanhBackward", "ReluBackward"):
        result = saved.of(beneath, "_saved_result")
        return result.reshape(shape) if result is not None else None
    if size_of(shape) <= MAX_MULTIPLIED and (product := scaled(node, saved)) is not None:
        result = output(product.inner, saved)
        known = result is not None and result.device == product.factor.device
        return (result * product.factor).reshape(shape) if known else None
    if size_of(shape) > MAX_RECOMPUTED:
        return None
    if name_of(beneath) in PLAIN_PRODUCTS or name_of(beneath) == "AddBackward":
        result = _of_plain_tensors(beneath, saved)
        return result.reshape(shape) if result is not None and result.numel() == size_of(shape) else None
    if name_of(beneath) != "AddmmBackward":
        return None
    bias, _, right = (following for following, _ in beneath.next_functions)
    left: Any = saved.of(beneath, "_saved_mat1")
    weight: Any = only(right) if right is not None else None
    if left is None or left.numel() > MAX_RECOMPUTED * 16 or not (is_leaf(bias) and is_leaf(weight)):
        return None
    plain = left.dtype == torch.float32 == weight.variable.dtype and left.device == weight.variable.device
    if name_of(right) != "TBackward" or not plain:
        return None
    return torch.addmm(bias.variable.detach(), left.detach(), weight.variable.detach().t()).reshape(shape)


class Scaled:
    """What an activation gives between two bounds, times numbers that do not learn: `torch.sigmoid(gate) * x`."""

    def __init__(self, kind: ActivationKind, inner: Any, factor: Any) -> None:
        self.kind, self.inner, self.factor = kind, inner, factor


def scaled(node: Any, saved: SavedTensors) -> Scaled | None:
    """The factor has the shape of the product."""
    while node is not None and kind_of(node) in SHAPES_KEPT:
        node = only(node)
    shape = shape_of(node) if node is not None else None
    factor: Any = None
    for _ in range(MAX_FACTORS):
        sides = [following for following, _ in node.next_functions] if node is not None else []
        if not sides or name_of(node) != "MulBackward" or sides.count(None) != 1:
            break
        other: Any = saved.of(node, "_saved_self" if sides[0] is None else "_saved_other")
        if other is None or not gpu.plain(other) or other.is_complex():
            return None
        factor = other.detach() if factor is None else factor * other.detach()
        node = sides[0] or sides[1]
    beneath = through_views(node)
    kind = graph_reading.ACTIVATIONS.get(name_of(beneath)) if beneath is not None else None
    if factor is None or shape is None or kind not in BOUNDED:
        return None
    return Scaled(kind, node, factor.expand(shape))


def _of_plain_tensors(node: Any, saved: SavedTensors) -> Any:
    """`h @ w`, or `h @ w + b`, of a model that has no modules."""
    if name_of(node) in PLAIN_PRODUCTS:
        names = PLAIN_PRODUCTS[name_of(node)]
        left, right = (_factor(node, place, name, saved) for place, name in enumerate(names))
        small = left is not None and right is not None and left.numel() <= MAX_RECOMPUTED * 16
        plain = small and left.dtype == torch.float32 == right.dtype and gpu.near(left) and gpu.near(right)
        return left.detach() @ right.detach() if plain else None
    sides = sorted(graph_reading.before(node), key=is_leaf)  # the bias last
    if len(sides) != 2 or not is_leaf(sides[1]) or name_of(sides[0]) not in PLAIN_PRODUCTS:
        return None
    product, bias = sides
    result = _of_plain_tensors(product, saved)
    return result + bias.variable.detach() if result is not None else None


def _factor(node: Any, place: int, name: str, saved: SavedTensors) -> Any:
    """What a product was given: it keeps what the gradient of the other one needs, and has its leaves."""
    following = node.next_functions[place][0]
    return following.variable if is_leaf(following) else saved.of(node, name)


def through_views(node: Any) -> Any:
    """Past what only gives another shape."""
    depth = 0
    while node is not None and depth < 5 and kind_of(node) in VIEWS:
        node = only(node)
        depth += 1
    return node


def hidden_state(node: Any) -> ActivationKind | Literal[""]:
    """What a node is given is the hidden state of a recurrent layer, between -1 and 1: of which kind."""
    given = _given(node)
    return _state(*given[0], MAX_JOINS) if len(given) == 1 else ""


def _state(node: Any, place: int, joins: int) -> ActivationKind | Literal[""]:
    """`place`: which of the results of the node; `joins`: through so many that put parts together."""
    name, given = name_of(node), _given(node)
    if kind_of(node) in VIEWS:
        return _state(*given[0], joins - 1) if len(given) == 1 and joins else ""
    if name in JOINS and joins:
        some = given[:: len(given) // MAX_JOINED + 1] + given[-1:]
        kinds = {_state(*part, joins - 1) for part in some}
        return kinds.pop() if len(kinds) == 1 else ""
    if name in FUSED_LAYERS:
        whole = place < 2 and not getattr(node, "_saved_proj_size", 0)  # the third is the memory of an LSTM
        return FUSED_LAYERS[name].get(getattr(node, "_saved_mode", 0), "") if whole else ""
    if name in FUSED_CELLS and place == 0:
        return FUSED_CELLS[name]
    if name == "TanhBackward":
        return "tanh"
    names = sorted(name_of(part) for part, _ in given)
    if name == "MulBackward" and names == ["SigmoidBackward", "TanhBackward"]:
        return "gated_tanh"
    return "gru" if name == "AddBackward" and names == ["MulBackward", "TanhBackward"] and _is_gru(given) else ""


def _is_gru(given: list[tuple[Any, int]]) -> bool:
    """`(h - new) * gate + new`: between the new state, a tanh, and the one before."""
    new = next(node for node, _ in given if name_of(node) == "TanhBackward")
    product = next(node for node, _ in given if node is not new)
    change, gate = (next((n for n, _ in _given(product) if name_of(n) == kind), None) for kind in GRU_FACTORS)
    return gate is not None and change is not None and any(node is new for node, _ in _given(change))


def _given(node: Any) -> list[tuple[Any, int]]:
    """Nodes, and which of their results."""
    return [part for part in node.next_functions if part[0] is not None]


def only(node: Any) -> Any:
    """What it was given that has a gradient, if that is one thing; of a difference the first."""
    given = list(graph_reading.before(node))
    if len(given) == 1 or (given and name_of(node) in ("SubBackward", "RsubBackward")):
        return given[0]
    return None


def size_of(shape: list[int] | None) -> int:
    return prod(shape or ())
