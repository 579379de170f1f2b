"""Operations at the edge of what they are defined for: log 0, 0/0, a root of 0 whose slope is infinite.

`forward` says whether a node's own operation made NaN or infinity of finite numbers, `slope` whether its gradient is
NaN or infinite although its result is finite. Loaded when a graph has an operation that can do so.
"""

from __future__ import annotations

from typing import Any

import torch

from ...records.numerics import Operation, Why
from ..learning.graph_reading import before, name_of, operation_of, saved, signed
from .steep import LOGS

MAX_ROWS = 6
UNDER_SOFTMAX = ("ViewBackward", "AddBackward", "UnsafeViewBackward", "DivBackward", "ToCopyBackward")
"""What may lie between a mask and its softmax."""


class Edge:
    """Why an operation made NaN or infinity; where; and an example of what it was given."""

    def __init__(
        self, why: Why, mask: Any = None, example: str = "", detail: str = "", *, backward: bool = False
    ) -> None:
        self.why, self.mask, self.example, self.detail, self.backward = why, mask, example, detail, backward
        self.masked_out = False

    def record(self, node: Any, path: tuple[int, ...], **more: Any) -> Operation:
        rows = rows_of(self.mask) if self.mask is not None else {}
        return Operation(
            operation=operation_of(node), why=self.why, made=True, backward=self.backward, masked_out=self.masked_out,
            detail=self.detail, example=self.example, path=list(path), **rows, **more,
        )  # fmt: skip


def forward(node: Any, kind: str) -> Edge | None:
    """`kind`: the name of the node, less `Backward`."""
    if kind == "Div":
        return _division(node)
    if kind in ("Std", "Var"):
        return _spread(node)
    if kind in ("Softmax", "LogSoftmax", "SafeSoftmax"):
        return _masked(node)
    value = _real(node)
    if kind in LOGS and value is not None:
        return _logarithm(value, -1.0 if kind == "Log1P" else 0.0)
    if kind in ("Acos", "Asin", "Atanh") and value is not None and finite(value):
        return _first("beyond-one", value.abs() > 1 if kind != "Atanh" else value.abs() >= 1, value)
    if kind == "Pow":
        return _power(node, value)
    if kind in ("Exp", "Expm1", "Sqrt", "Rsqrt", "Reciprocal"):
        return _by_result(saved(node, "_saved_result"), kind)
    return None


def _real(node: Any) -> Any:
    """What it was given; None where that is complex."""
    value = saved(node, "_saved_self")
    return value if value is not None and value.is_floating_point() else None


def _first(why: Why, bad: Any, value: Any, detail: str = "") -> Edge | None:
    """With the first bad element as the example; None where there is none."""
    return Edge(why, bad, repr(float(value[bad][0])), detail) if bool(bad.any()) else None


def _logarithm(value: Any, least: float) -> Edge | None:
    if not value.numel() or not float(value.min()) <= least or not finite(value):
        return None
    return _first("log-of-zero" if bool((value >= least).all()) else "log-of-negative", value <= least, value)


def _by_result(result: Any, kind: str) -> Edge | None:
    if result is None or not result.is_floating_point() or finite(result):
        return None
    bad = ~torch.isfinite(result)
    of_nan = bool(torch.isnan(result).any())
    if kind in ("Exp", "Expm1"):
        most = float(torch.log(torch.tensor(torch.finfo(result.dtype).max, dtype=torch.float64)))
        return None if of_nan else Edge("exp-overflow", bad, f"above {most:.4g}")
    if kind == "Reciprocal":
        return None if of_nan else Edge("division-by-zero", bad, "0.0")
    if of_nan:  # of a negative number; or it was NaN before: older nodes would show it
        return Edge("root-of-negative", bad)
    return Edge("root-overflow", bad) if kind == "Sqrt" else Edge("reciprocal-root-of-zero", bad, "0.0")


def _division(node: Any) -> Edge | None:
    above, below = saved(node, "_saved_self"), saved(node, "_saved_other")
    if below is None or not below.is_floating_point() or not finite(below):
        return None
    bad = below == 0
    if not bool(bad.any()) or (above is not None and not finite(above)):
        return None
    example = ""
    if above is not None:
        whole = torch.broadcast_shapes(above.shape, below.shape)
        example = f"{float(above.expand(whole)[bad.expand(whole)][0]):.3g} / 0"
    return Edge("division-by-zero", bad, example)


def _spread(node: Any) -> Edge | None:
    value = _real(node)
    if value is None:
        return None
    dims, count = getattr(node, "_saved_dim", None), 1
    for dim in [signed(each) or 0 for each in dims] if dims else range(value.dim()):
        count *= int(value.shape[dim])
    correction = getattr(node, "_saved_correction", None)
    if count > (1 if correction is None else float(correction)):
        return None
    return Edge("spread-of-too-few", None, str(count), f"of {count} value{'s' * (count != 1)}")


def _masked(node: Any) -> Edge | None:
    """Softmax of a row that is all -inf: only a mask makes such."""
    result, dim = saved(node, "_saved_result"), signed(getattr(node, "_saved_dim", -1))
    if result is None or not result.is_floating_point() or not result.dim():
        return None
    row = torch.isnan(result).all(dim=-1 if dim is None else dim)
    if not bool(row.any()) or bool(torch.isnan(result).all()):
        return None
    return Edge("row-masked", row, "every element -inf") if _behind_mask(node) else None


def _behind_mask(node: Any) -> bool:
    """What it was given came out of a mask, or of a sum with something that has no gradient."""
    here = node.next_functions[0][0] if node.next_functions else None
    for _ in range(4):
        if here is None:
            return False
        name = name_of(here)
        if name in ("MaskedFillBackward", "WhereBackward") or (name == "AddBackward" and len(list(before(here))) == 1):
            return True
        if name not in UNDER_SOFTMAX:
            return False
        here = here.next_functions[0][0]
    return False


def _power(node: Any, value: Any) -> Edge | None:
    exponent: Any = getattr(node, "_saved_exponent", None)
    if value is None or type(exponent) not in (int, float) or not finite(value):
        return None
    return _first("power", ~torch.isfinite(value**exponent), value, f"power {exponent:g}")


def slope(node: Any, kind: str) -> Edge | None:
    """Why its slope is infinite, though its result may be finite."""
    if kind == "Sqrt":
        result = saved(node, "_saved_result")
        if result is None or not result.numel() or float(result.min()) != 0.0:  # the usual case: one small operation
            return None
        return Edge("slope-of-root", result == 0, "0.0", backward=True)
    value = _real(node)
    if kind == "Pow":
        return _slope_of_power(node, value)
    if kind in ("Acos", "Asin") and value is not None:
        bad = value.abs() == 1
        if bool(bad.any()):
            return Edge("slope-at-one", bad, repr(float(value[bad][0])), backward=True)
    made = forward(node, kind)
    if made is not None:
        made.backward = made.masked_out = True
    return made


def _slope_of_power(node: Any, value: Any) -> Edge | None:
    exponent: Any = getattr(node, "_saved_exponent", None)
    if value is None or type(exponent) not in (int, float) or not exponent < 1 or exponent == 0:
        return None
    bad = value == 0
    return Edge("slope-of-power", bad, "0.0", f"power {exponent:g}", backward=True) if bool(bad.any()) else None


def of_loss(node: Any, kind: str) -> Edge | None:
    """A mean over no labels, or over nothing at all."""
    if kind in ("NllLoss", "NllLoss2D"):
        target, ignored = saved(node, "_saved_target"), signed(getattr(node, "_saved_ignore_index", None))
        if target is not None and ignored is not None and (not target.numel() or bool((target == ignored).all())):
            return Edge("labels-ignored", None, str(int(target.numel())), f"ignore_index ({ignored})")
    if kind == "Mean" and getattr(node, "_saved_self_sym_numel", 1) == 0:
        return Edge("mean-of-nothing", None, "0 elements")
    return None


def rows_of(mask: Any) -> dict[str, Any]:
    """The fields of records.numerics.BadRows."""
    count = int(mask.sum())
    rows = mask.reshape(mask.shape[0], -1).any(dim=1).nonzero().flatten().tolist() if mask.dim() and count else []
    return {"count": count, "of": int(mask.numel()), "rows": rows[:MAX_ROWS], "bad_rows": len(rows)}


def finite(tensor: Any) -> bool:
    """Most are, and then their sum is: one small operation."""
    return bool(torch.isfinite(tensor.detach().sum())) or bool(torch.isfinite(tensor.detach()).all())
