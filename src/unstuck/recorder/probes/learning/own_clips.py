"""Clipping that the script writes out itself: the norm and the limit it has at that line, in sampled steps.

Where it stands is read from the source, once, and only where the loss does not fall. The function may have returned
when the step is over: until then the user's functions are looked at as they return. What is called a norm there is one
of the gradients if it is as large as what the backward pass left.
"""

from __future__ import annotations

import sys
from itertools import islice
from math import isfinite
from types import FrameType
from typing import Any

import torch

from ... import flight, governor, gpu, guard, hiding, objects, user_code
from ...hooks import modules as hooks
from ..loops.expressions import Scope, number, scope_of
from . import clip_lines, graph_reading, script_lines
from .clip_lines import ClipLine, ClipLines
from .losses import Losses
from .parameters import Parameters
from .schedules import Clips

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

FALLEN = 0.5  # of the first loss
MOST_FOLLOWED, MOST_EVENTS = 64, 5_000  # steps, and calls and returns that are followed in one: some milliseconds
SAME_NORM = 0.03  # half precision rounds it
MIN_SCALE = 16.0  # a smaller factor of a loss is a weight
MOST_FACTORS, MOST_CALLERS = 4, 4
YIELDS = 0x2A0  # generators and coroutines: a `yield` is a return, too
NOWHERE = ClipLines({}, [])


class OwnClips:
    def __init__(self, losses: Losses, parameters: Parameters, clips: Clips, saved: graph_reading.SavedTensors) -> None:
        self._losses, self._parameters, self._clips, self._saved = losses, parameters, clips, saved
        self._lines: ClipLines | None = None  # None: not looked for
        self._left: tuple[int, float] | None = None  # the step, and the norm of the gradient as it was left
        self._scale, self._divided = 1.0, False
        """What the loss is multiplied with; whether the script divides by it again."""
        self._awaits = False  # a backward pass that is looked at
        self._events = self._followed = 0
        self._follower = self._follow  # one object: whether it is ours that is set is asked by identity

    def before(self, root: Any, frame: FrameType) -> None:
        """Before a backward pass that is looked at."""
        self.stop()
        if self._lines is None:
            series = self._losses.of(frame)
            if series is not None and self._learns(series.first, series.last):
                self._lines = NOWHERE
            else:
                self._lines = clip_lines.find(script_lines.user_files(frame))
        if not self._lines.by_function:
            return
        users = list(islice(script_lines.user_frames(frame), MOST_CALLERS))
        if self._left is not None and self._left[0] >= flight.steps() - 1:
            for caller in users:  # its names are still those after the last backward pass
                self._look(caller, scope_of(caller))
        self._left, self._awaits = None, True
        self._scale = self._factor(root)
        self._divided = self._scale >= MIN_SCALE and any(map(self._divides, users))

    def _learns(self, first: list[float], last: float) -> bool:
        return not first or last < FALLEN * first[0]

    def _factor(self, root: Any) -> float:
        factor, node = 1.0, root.grad_fn
        for _ in range(MOST_FACTORS):
            kind = graph_reading.kind_of(node) if node is not None else ""
            if kind not in ("Mul", "Div"):
                break
            given = [self._saved.of(node, f"_saved_{name}") for name in ("other", "self")]
            plain = [value for each in given if each is not None and type(value := number(each)) in (int, float)]
            if len(plain) != 1 or not plain[0]:
                break
            factor = factor * plain[0] if kind == "Mul" else factor / plain[0]
            node = next(graph_reading.before(node), None)
        return factor

    def _divides(self, frame: FrameType) -> bool:
        scope = scope_of(frame)
        values = (number(scope.find(each)) for each in self._lines.divisors) if self._lines is not None else ()
        return any(type(value) in (int, float) and value == self._scale for value in values)

    def after(self) -> None:
        """After that backward pass."""
        if self._awaits:
            leaves = (leaf for ref in self._parameters.last_reached if (leaf := ref()) is not None)
            self.given(leaf.grad for leaf in leaves)

    def given(self, gradients: Iterable[Any]) -> None:
        if not self._awaits:
            return
        dense = [each.detach() for each in gradients if each is not None and not each.is_sparse and gpu.plain(each)]
        if not dense or not all(map(gpu.near, dense)):
            return
        sizes = [torch.linalg.vector_norm(each, dtype=torch.float32) for each in dense]
        self._left = flight.steps(), float(torch.linalg.vector_norm(torch.stack(sizes)))
        alone = sys.getprofile() is None and not hooks.is_profiled() and not hiding.has_compiled()
        if self._followed < MOST_FOLLOWED and alone and _may_follow():
            self._events, self._followed = 0, self._followed + 1
            sys.setprofile(self._follower)

    def stop(self) -> None:
        """Frames that were followed got a copy of their variables, which would keep these alive."""
        if sys.getprofile() is self._follower:
            sys.setprofile(None)
        if self._events:
            self._events = 0
            for frame in user_code.frames(sys._getframe()):
                if script_lines.is_function(frame):
                    objects.locals_of(frame)
        self._awaits = False

    def _follow(self, frame: FrameType, event: str, _result: Any) -> None:
        self._events += 1
        line = self._line(frame) if event == "return" else None
        if line is None and self._events <= MOST_EVENTS:
            return
        sys.setprofile(None)
        try:
            if line is not None:
                with governor.Reading() as reading:
                    self._look(frame, Scope(dict(frame.f_locals), frame.f_globals))  # not emptied: it is written back
                    reading.spent_by("learning")
        except Exception as fault:
            self._lines = NOWHERE
            guard.off("own clipping", fault)

    def _line(self, frame: FrameType) -> ClipLine | None:
        if self._lines is None or frame.f_code.co_flags & YIELDS:
            return None
        return self._lines.by_function.get(clip_lines.key_of(frame.f_code))

    def _look(self, frame: FrameType, scope: Scope) -> None:
        """What the norm and the limit are."""
        line = self._line(frame)
        if line is None or self._left is None:
            return
        norm, limit = number(scope.find(line.norm)), number(scope.find(line.limit))
        if not all(type(value) in (int, float) and isfinite(value) and value > 0 for value in (norm, limit)):
            return
        left, code = self._left[1], frame.f_code
        raw = abs(norm - left) <= SAME_NORM * left
        if raw or abs(norm * self._scale - left) <= SAME_NORM * left:
            site = user_code.absolute(code.co_filename), line.line, user_code.name_of(code)
            scale = self._scale if self._divided else 1.0
            passes = self._losses.passes()
            self._clips.note_own(float(norm), float(limit), scale, raw and self._divided, site, passes)


def _may_follow() -> bool:
    """None of the user's frames that go on may hold the copy of its variables, which `stop` empties."""
    return sys.version_info >= (3, 13) or not any(
        script_lines.is_function(frame) and objects.may_hold_locals(frame.f_code)
        for frame in script_lines.user_frames(sys._getframe())
    )
