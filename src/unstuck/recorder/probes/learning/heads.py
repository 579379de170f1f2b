"""The loss functions of the training, each with what it was given over the sampled batches."""

from __future__ import annotations

from types import FrameType
from typing import Any

from ... import dispatch, gpu
from ...records import Site
from ...records.learning import LossHead
from . import loss_head, loss_lines, sites
from .graph_reading import SavedTensors
from .targets import TargetStats

HEADS = 8


class Known:
    """One loss function, at one call of backward."""

    def __init__(self, head: loss_head.Head, site: Site | None, called: Site | None, copies: gpu.Copies) -> None:
        self.head, self.site, self.called = head, site, called
        self.times = 0
        self.targets = TargetStats(head.op, copies)

    def take(self, given: loss_head.Given, frame: FrameType | None) -> None:
        target = given.target
        dispatch.ask("data", "loss_given", target, self.head.op, given.ignored)
        self.targets.take(given)
        if self.targets.batches == 1 and target is not None:
            self.targets.look_for_ids(target, sites.user_frame(frame))

    def record(self) -> LossHead:
        head = self.head
        return LossHead(
            op=head.op, times=self.times, site=self.site, called=self.called, shape=head.shape, dim=head.dim,
            after=head.after, after_dim=head.after_dim, after_shape=head.after_shape, broadcast=head.broadcast,
            bare=head.bare, signed=head.signed, weighted=head.weighted, target=self.targets.record(),
            prediction=self.targets.output.record(),
        )  # fmt: skip


class Heads:
    def __init__(self, saved: SavedTensors, copies: gpu.Copies) -> None:
        self._saved, self._copies = saved, copies
        self._known: dict[tuple[object, ...], Known] = {}

    def note(self, root: Any, frame: FrameType | None) -> None:
        """Read the end of a graph."""
        head = loss_head.find(root, self._saved)
        if head is None:
            return
        called = sites.of(frame)
        key = head.op, head.after, head.after_dim, head.broadcast is not None, called[1] if called else 0
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= HEADS:
                return
            site = loss_lines.site(frame, head.op) or called
            known = self._known[key] = Known(head, site, called, self._copies)
        known.times += 1
        given, head.given = head.given, None  # the graph's own tensors are not kept
        if given is not None:
            known.take(given, frame)

    def records(self) -> list[LossHead]:
        return [known.record() for known in self._known.values()]
