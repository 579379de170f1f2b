"""Discounted returns that are computed from the last reward back to the first, appended, and never turned round.

Where the source reads like that, the numbers decide: the returns held at the backward pass are those of the rewards in
reverse, exactly. A mean that was taken away and a factor make no difference.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice
from types import FrameType
from typing import Any

import torch

from ... import user_code
from ...records import Site
from ...records.learning import Torn
from ..loops.parsed_source import called, mentions, own_nodes, scope_name, scopes, tree_of
from . import script_lines

MOST_LOOKS = 6  # the first ones: the fit is exact, so one that is found is enough
MOST_FRAMES, MOST_NAMES = 3, 200
MIN_STEPS, MOST_STEPS, MOST_COLUMNS = 8, 2048, 32
MAX_MISFIT = 1e-6  # of the variance
TURNS = ("flip", "flipud", "reverse", "reversed", "appendleft", "insert")
RATES = 0.05, 1.0001


class BackwardReturns:
    def __init__(self) -> None:
        self._looks = 0
        self._sites: dict[str, Site | None] = {}
        self.torn: Torn | None = None

    def look(self, frame: FrameType | None) -> None:
        if self._looks >= MOST_LOOKS or self.torn is not None:
            return
        self._looks += 1
        for user in islice(script_lines.user_frames(frame), MOST_FRAMES):
            file = user.f_code.co_filename
            if file not in self._sites:
                self._sites[file] = _appended_backwards(file)
            site = self._sites[file]
            if site is not None and any(_backwards(script_lines.names_in(user))):
                self.torn = Torn(how="backwards", site=site)
                return


# --- in the source --------------------------------------------------------------------------------------------------


def _appended_backwards(file: str) -> Site | None:
    """The line that appends `g = r + gamma * g` in a loop from the last to the first, in a file that turns nothing
    else round."""
    may = mentions(file, "append(") and (mentions(file, "reversed(") or mentions(file, "-1"))
    tree = tree_of(file) if may else None
    if tree is None or sum(map(_turns, ast.walk(tree))) != 1:
        return None
    for function in scopes(tree):
        for loop in own_nodes(function):
            if isinstance(loop, ast.For) and any(map(_turns, ast.walk(loop.iter))):
                for node in ast.walk(loop):
                    if _is_call(node, "append") and len(node.args) == 1 and _accumulates(loop, node.args[0]):  # type: ignore[attr-defined]
                        return user_code.absolute(file), node.lineno, scope_name(function)  # type: ignore[attr-defined]
    return None


def _turns(node: ast.AST) -> bool:
    """`reversed(x)`, `x[::-1]`, `x.flip(0)`, `range(n - 1, -1, -1)`, and what puts things in front of others."""
    if isinstance(node, ast.Slice):
        return _is_negative(node.step)
    if isinstance(node, ast.Call) and script_lines.called(node) == "range":
        return len(node.args) == 3 and _is_negative(node.args[2])
    return called(node) in TURNS


def _is_negative(node: ast.expr | None) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


def _is_call(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name


def _accumulates(loop: ast.For, given: ast.expr) -> bool:
    """It is a name that the loop makes of itself: a sum in which it is multiplied."""
    name = given.id if isinstance(given, ast.Name) else ""
    sums = (node for node in ast.walk(loop) if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp))
    return any(
        isinstance(target, ast.Name) and target.id == name and isinstance(node.value.op, ast.Add)  # type: ignore[attr-defined]
        and any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node.value))
        for node in sums
        for target in node.targets
    )  # fmt: skip


# --- in the numbers -------------------------------------------------------------------------------------------------


def _backwards(names: dict[str, Any]) -> Iterator[bool]:
    """For each pair of a tensor and rewards that fits: whether it does backwards alone."""
    held = list(islice(names.values(), MOST_NAMES))
    given = [rewards for each in held if type(each) in (list, torch.Tensor) and (rewards := _table(each)) is not None]
    for returns in (table for each in held if type(each) is torch.Tensor and (table := _table(each)) is not None):
        for rewards in given:
            if rewards.shape == returns.shape:
                reverse = rewards.flip(0)
                yield _follows(returns, reverse) and not _follows(returns.flip(0), reverse)


def _table(thing: Any) -> Any:
    """Steps × columns, in double precision; a list of as many numbers or small tensors is one, too."""
    if type(thing) is list:
        count = list.__len__(thing)
        if not MIN_STEPS <= count <= MOST_STEPS:
            return None
        parts = list(thing)
        if all(type(part) in (int, float) for part in parts):
            thing = torch.tensor(parts, dtype=torch.float64, device="cpu")
        elif all(type(part) is torch.Tensor and part.is_cpu and part.numel() <= MOST_COLUMNS for part in parts):
            if len({part.shape for part in parts}) > 1 or any(part.requires_grad for part in parts):
                return None
            thing = torch.stack(parts)
        else:
            return None
    if not thing.is_cpu or not 1 <= thing.dim() <= 2 or not MIN_STEPS <= thing.shape[0] <= MOST_STEPS:
        return None
    return None if thing.requires_grad else thing.reshape(thing.shape[0], -1)[:, :MOST_COLUMNS].double()


def _follows(returns: Any, rewards: Any) -> bool:
    """Each is its reward and a share of the one before, exactly."""
    ahead = returns[1:].reshape(-1)
    known = torch.stack((rewards[1:].reshape(-1), returns[:-1].reshape(-1), torch.ones_like(ahead)), 1)
    spread = float(ahead.var())
    if not spread > 0 or not bool(torch.isfinite(known).all()):
        return False
    fit = torch.linalg.lstsq(known, ahead.unsqueeze(1), driver="gelsd").solution[:, 0]
    misfit = float((known @ fit - ahead).square().mean())
    return misfit < MAX_MISFIT * spread and float(fit[0]) > 0 and RATES[0] < float(fit[1]) < RATES[1]
