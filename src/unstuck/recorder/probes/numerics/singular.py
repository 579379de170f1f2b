"""Operations at the edge of what they are defined for: log 0, 0/0, a root of 0 whose slope has no end.

`forward` says whether a node's own operation made what is no number. `guard` looks, before each backward pass, at the
few nodes of a graph whose slope can be infinite although the loss is a number.
"""

from __future__ import annotations

import sys
from collections import deque
from time import perf_counter

from ... import flight
from ..learning import graph_reading, losses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NODES = 600
WATCHED = 6
ADVANCE, SHARE, ONCE = 0.1, 0.004, 0.002
"""Seconds for looking at slopes: at once, of the time that passes, and the most that one look counts (other processes
may have had the processor)."""
LOGS = ("Log", "Log2", "Log10", "Log1P")
STEEP = ("Sqrt", "Pow", "Acos", "Asin", *LOGS, "Div", "Reciprocal", "Rsqrt", "Exp")
"""Kinds whose slope can be infinite, or not a number where a mask takes the bad result out again."""
steep: dict[str, Any] | None = None
"""The last slope without end that a backward pass went through: what is said of it, and its step."""


def forward(node: Any, kind: str, torch: Any) -> tuple[str, Any, str] | None:
    """Why this operation, given numbers, gave what is none; where; and an example of what it was given."""
    if kind == "Div":
        return _division(node, torch)
    if kind in ("Std", "Var"):
        return _spread(node, kind)
    if kind in ("Softmax", "LogSoftmax", "SafeSoftmax"):
        return _masked(node, torch)
    value = graph_reading.saved(node, "_saved_self")
    if kind in LOGS and value is not None:
        least = -1.0 if kind == "Log1P" else 0.0
        if not _finite(value, torch):
            return None
        bad = value <= least
        if not bool(bad.any()):
            return None
        name = kind.lower()
        return (
            (f"{name} of {least:.0f}" if bool((value >= least).all()) else f"{name} of a negative number"),
            bad,
            (repr(float(value[bad][0]))),
        )
    if kind in ("Acos", "Asin", "Atanh") and value is not None and _finite(value, torch):
        bad = value.abs() > 1 if kind != "Atanh" else value.abs() >= 1
        return (f"{kind.lower()} of a number beyond ±1", bad, repr(float(value[bad][0]))) if bool(bad.any()) else None
    if kind == "Pow":
        return _power(node, value, torch)
    result = graph_reading.saved(node, "_saved_result")
    if result is None or not result.is_floating_point():
        return None
    bad = ~torch.isfinite(result)
    if kind not in ("Exp", "Expm1", "Sqrt", "Rsqrt", "Reciprocal") or not bool(bad.any()):
        return None
    of_nan = bool(torch.isnan(result).any())
    if kind in ("Exp", "Expm1"):
        return None if of_nan else ("exp of a number too large", bad, f"above {_most(result, torch):.4g}")
    if kind == "Reciprocal":
        return None if of_nan else ("division by 0", bad, "0.0")
    if of_nan:  # of a negative number; or of what was none before: older nodes would show it
        return "root of a negative number", bad, ""
    return ("root of a number too large", bad, "") if kind == "Sqrt" else ("1/root of 0", bad, "0.0")


def _division(node: Any, torch: Any) -> tuple[str, Any, str] | None:
    above, below = (graph_reading.saved(node, name) for name in ("_saved_self", "_saved_other"))
    if below is None or not below.is_floating_point() or not _finite(below, torch):
        return None
    bad = below == 0
    if not bool(bad.any()) or (above is not None and not _finite(above, torch)):
        return None
    example = ""
    if above is not None:
        whole = torch.broadcast_shapes(above.shape, below.shape)
        example = f"{float(above.expand(whole)[bad.expand(whole)][0]):.3g} / 0"
    return "division by 0", bad, example


def _spread(node: Any, kind: str) -> tuple[str, Any, str] | None:
    value = graph_reading.saved(node, "_saved_self")
    if value is None:
        return None
    word = "standard deviation" if kind == "Std" else "variance"
    dims, count = getattr(node, "_saved_dim", None), 1
    for dim in [_signed(d) for d in dims] if dims else range(value.dim()):
        count *= int(value.shape[dim])
    correction = getattr(node, "_saved_correction", None)
    correction = 1 if correction is None else float(correction)
    return (f"{word} of {count} value{'s' * (count != 1)}", None, str(count)) if count <= correction else None


def _masked(node: Any, torch: Any) -> tuple[str, Any, str] | None:
    """Softmax of a row that is all -inf: only a mask makes such."""
    result = graph_reading.saved(node, "_saved_result")
    if result is None or not result.is_floating_point() or not result.dim():
        return None
    row = torch.isnan(result).all(dim=_signed(getattr(node, "_saved_dim", -1)))
    if not bool(row.any()) or bool(torch.isnan(result).all()):
        return None
    before = node.next_functions[0][0] if node.next_functions else None
    for _ in range(4):
        if before is None:
            return None
        name = graph_reading.name_of(before)
        if name in ("MaskedFillBackward", "WhereBackward"):
            return "softmax of a row that is masked everywhere", row, "every element -inf"
        if name not in ("ViewBackward", "AddBackward", "UnsafeViewBackward", "DivBackward", "ToCopyBackward"):
            return None
        if name == "AddBackward" and len([n for n, _ in before.next_functions if n is not None]) == 1:
            return "softmax of a row that is masked everywhere", row, "every element -inf"
        before = before.next_functions[0][0]
    return None


def _power(node: Any, value: Any, torch: Any) -> tuple[str, Any, str] | None:
    exponent = getattr(node, "_saved_exponent", None)
    if value is None or not isinstance(exponent, int | float) or not _finite(value, torch):
        return None
    bad = ~torch.isfinite(value**exponent)
    return (f"power {exponent:g}", bad, repr(float(value[bad][0]))) if bool(bad.any()) else None


def slope(node: Any, kind: str, torch: Any) -> tuple[str, Any, str] | None:
    """Why its slope is infinite, though what it gave may be a number."""
    if kind == "Sqrt":
        result = graph_reading.saved(node, "_saved_result")
        if result is None or not result.numel() or float(result.min()) != 0.0:  # the usual way: one small operation
            return None
        return "the slope of a root at 0 is infinite", result == 0, "0.0"
    value = graph_reading.saved(node, "_saved_self")
    if kind == "Pow":
        exponent = getattr(node, "_saved_exponent", None)
        if value is None or not isinstance(exponent, int | float) or not exponent < 1 or exponent == 0:
            return None
        bad = value == 0
        return (f"the slope of power {exponent:g} at 0 is infinite", bad, "0.0") if bool(bad.any()) else None
    if kind in ("Acos", "Asin") and value is not None:
        bad = value.abs() == 1
        if bool(bad.any()):
            return f"the slope of {kind.lower()} at ±1 is infinite", bad, repr(float(value[bad][0]))
    made = forward(node, kind, torch)
    return (f"{made[0]}, in a part that is masked out afterwards", made[1], made[2]) if made is not None else None


# --- before every backward pass ------------------------------------------------------------------------------


def guard(root: Any, series: losses.Series) -> None:
    """The loss is a number: will its gradient be? Follows known paths to the few nodes that can spoil it."""
    if graph_reading.hooks_used or root.grad_fn is None or not _budget.allows():
        return
    with _budget:
        if series.count in losses.LOOKS:
            series.steep = _find(root.grad_fn)
        _check(root.grad_fn, series.steep)


def _check(node: Any, paths: list[tuple[tuple[int, ...], str]]) -> None:
    global steep
    torch = sys.modules["torch"]
    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
        for path, name in paths:
            here = at(node, path)
            if here is None or graph_reading.name_of(here) != name:
                continue
            kind = name.removesuffix("Backward")
            found = slope(here, kind, torch)
            if found is not None:
                steep = _told(found, kind, path)
                return


class Budget:
    """Its own, for it must look at every step: what others spent must not make it miss the one that counts."""

    __slots__ = ("_from", "began", "spent")

    def __init__(self) -> None:
        self.spent = self._from = self.began = 0.0

    def allows(self) -> bool:
        self._from = perf_counter()
        self.began = self.began or self._from
        return self.spent < ADVANCE + SHARE * (self._from - self.began)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *raised: object) -> None:
        self.spent += min(perf_counter() - self._from, ONCE)


_budget = Budget()


def _told(found: tuple[str, Any, str], kind: str, path: tuple[int, ...]) -> dict[str, Any]:
    from . import nan_origin

    why, mask, value = found
    rows = nan_origin._rows(mask) if mask is not None else {}
    about = {"made": True, "backward": True, "where": why, "example": value, "path": list(path), "layer": ""}
    return {"operation": nan_origin._plain(kind), "step": flight.steps(), "order": 0, **about, **rows}


def _find(root: Any) -> list[tuple[tuple[int, ...], str]]:
    """Paths to the nodes worth watching; most graphs have none."""
    found: list[tuple[tuple[int, ...], str]] = []
    waiting: deque[tuple[Any, tuple[int, ...]]] = deque([(root, ())])
    seen = {root}
    while waiting and len(seen) < NODES and len(found) < WATCHED:
        node, path = waiting.popleft()
        name = graph_reading.name_of(node)
        if name.removesuffix("Backward") in STEEP and not _harmless(node, name):
            found.append((path, name))
        for place, (following, _) in enumerate(node.next_functions):
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append((following, (*path, place)))
    return found


def _harmless(node: Any, name: str) -> bool:
    """A square, and a division by a plain number."""
    if name == "PowBackward":
        exponent = getattr(node, "_saved_exponent", None)
        return isinstance(exponent, int | float) and exponent >= 1
    if name == "DivBackward":
        below = graph_reading.saved(node, "_saved_other")
        return below is None or (below.dim() == 0 and not below.requires_grad)
    return False


def at(node: Any, path: tuple[int, ...] | list[int]) -> Any:
    """The node at the end of a path; None where the graph has another shape."""
    for place in path:
        following = node.next_functions
        if place >= len(following) or following[place][0] is None:
            return None
        node = following[place][0]
    return node


def _most(result: Any, torch: Any) -> float:
    """The largest number whose exponential can be written in this precision."""
    return float(torch.log(torch.tensor(torch.finfo(result.dtype).max, dtype=torch.float64)))


def _signed(value: Any) -> int:
    return int(value) - (1 << 64) * (int(value) >> 63) if isinstance(value, int) else -1


def _finite(tensor: Any, torch: Any) -> bool:
    return bool(torch.isfinite(tensor).all())
