"""Shapes in a graph of torch before 2.6, whose nodes do not say them: followed from the sizes that nodes keep.

Only numbers are read: a tensor that a node keeps may be recomputed by the reading (activation checkpointing).
"""

from __future__ import annotations

from typing import Any

SAME = {
    f"{name}Backward"
    for name in (
        "Relu", "Sigmoid", "Tanh", "Softmax", "LogSoftmax", "LeakyRelu", "Elu", "Gelu", "Silu", "Softplus", "Exp",
        "Log", "Pow", "Neg", "Abs", "Sqrt", "Clamp", "ToCopy", "Clone", "NativeDropout", "Hardtanh",
    )
}  # fmt: skip
"""Operations that give what has the shape of the one thing they get."""
BOTH = {f"{name}Backward" for name in ("Add", "Sub", "Mul", "Div")}
PRODUCTS = {"AddmmBackward": "_saved_mat1_sym_sizes", "MmBackward": "_saved_self_sym_sizes"}
REDUCED = {f"{name}Backward" for name in ("Mean", "Sum")}
MAX_BENEATH = 12  # operations followed


def shape(node: Any, left: int = MAX_BENEATH) -> list[int] | None:
    """Of what the operation gave; None where its sizes are not kept."""
    name: str = node.name().rstrip("0123456789")
    own = getattr(node, "_saved_self_sym_sizes", None)
    if name in PRODUCTS:
        first, second = getattr(node, PRODUCTS[name], None), getattr(node, "_saved_mat2_sym_sizes", None)
        return [int(first[0]), int(second[1])] if first and second else None
    if name in REDUCED:
        return _reduced(list(own or ()), getattr(node, "_saved_dim", None), getattr(node, "_saved_keepdim", False))
    if name == "SelectBackward" and own:
        return _without(list(own), [signed(node._saved_dim)])
    if name == "SqueezeBackward" and own:
        dim = getattr(node, "_saved_dim", None)
        ones = [at for at, size in enumerate(own) if size == 1]
        return _without(list(own), ones if dim is None else [at for at in ones if at == signed(dim) % len(own)])
    given = [following for following, _ in node.next_functions if following is not None]
    if not left or len(given) != (1 if name in SAME or name == "UnsqueezeBackward" else 2):
        return None
    shapes = [shape(each, left - 1) for each in given]
    if shapes[0] is None or shapes[-1] is None:
        return None
    if name == "UnsqueezeBackward":
        at = signed(node._saved_dim) % (len(shapes[0]) + 1)
        return [*shapes[0][:at], 1, *shapes[0][at:]]
    if name in BOTH:
        return _broadcast(shapes[0], shapes[-1])
    return shapes[0] if name in SAME else None


def _reduced(sizes: list[int], dims: Any, keep: bool) -> list[int] | None:
    if dims is None:
        return []
    gone = [signed(dim) % len(sizes) for dim in dims] if sizes else []
    return [1 if at in gone else size for at, size in enumerate(sizes)] if keep else _without(sizes, gone)


def _without(sizes: list[int], gone: list[int]) -> list[int]:
    places = {at % len(sizes) for at in gone} if sizes else set()
    return [int(size) for at, size in enumerate(sizes) if at not in places]


def _broadcast(first: list[int], second: list[int]) -> list[int]:
    length = max(len(first), len(second))
    a, b = ([1] * (length - len(sizes)) + sizes for sizes in (first, second))
    return [max(x, y) for x, y in zip(a, b, strict=True)]


def signed(number: int) -> int:
    """Of a number that a node keeps as an unsigned one."""
    return number - (1 << 64) * (number >> 63)
