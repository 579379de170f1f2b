"""The loss function at the end of a graph, and what it gets: target, prediction, the softmax in front of it."""

from __future__ import annotations

from collections import deque
from types import FrameType
from typing import Any, Literal

import torch

from ... import dispatch, gpu, user_code
from ...records import Site
from ...records.learning import ActivationKind, LossHead, LossOp
from . import crossed_loss, graph_reading, script_lines
from .graph_reading import ACTIVATIONS, SavedTensors, kind_of, name_of, shape_of, signed
from .model_output import hidden_state, only, output, scaled, size_of, through_views
from .targets import TargetStats

MAX_HEADS = 8
MAX_RESHAPED = 1 << 20  # elements, of what an output was multiplied with
CROSSINGS = 16  # graphs in which samples are looked for that meet all others: shapes hardly change
MAX_ABOVE = 8  # operations between a loss function and the scalar that backward is called on
KEEP_SIGN = (
    "Neg", "Mean", "Sum", "Div", "Mul", "View", "Reshape", "Squeeze", "Unsqueeze", "ToCopy", "Clone",
)  # fmt: skip
"""Operations between the two that keep the sign, but for a minus that is written: no second term is added."""
ABOVE = (*KEEP_SIGN, "Add", "Sub", "Sqrt")  # all that may lie between the two
KEEP_TARGET = ("nll", "mse", "smooth_l1", "huber", "bce", "bce_logits")
LOSSES: dict[str, LossOp] = {
    "NllLossBackward": "nll",
    "NllLoss2DBackward": "nll",
    "NllLossNdBackward": "nll",
    "MseLossBackward": "mse",
    "SmoothL1LossBackward": "smooth_l1",
    "HuberLossBackward": "huber",
    "BinaryCrossEntropyWithLogitsBackward": "bce_logits",
    "BinaryCrossEntropyBackward": "bce",
    "KlDivBackward": "kl_div",
    "CtcLossBackward": "ctc",
}
FED_BY: dict[str, ActivationKind] = {**ACTIVATIONS, "LogBackward": "log", "LogSoftmaxBackward": "log_softmax"}
PROBABILITIES = ["DivBackward", "NegBackward", "SumBackward", "MulBackward"]
"""What cross entropy with probabilities as targets is made of, above the log softmax."""


class Given:
    """Target and prediction of a loss function, as its node keeps them."""

    def __init__(self, target: Any, prediction: Any, dim: int = 1, ignored: int | None = None) -> None:
        self.target, self.prediction = target, prediction
        self.dim, self.ignored = dim, ignored  # dimension of the classes; the class to ignore
        self.factor: Any = None  # what the prediction was multiplied with, where it comes out of a bounded activation


class Head:
    """One loss function, as it was found in one graph; the fields are those of records.learning.LossHead."""

    def __init__(self, op: LossOp, node: Any) -> None:
        self.op = op
        self.shape = shape_of(node) or []
        self.dim: int | None = None
        self.after: ActivationKind | Literal[""] = ""
        self.after_dim: int | None = None
        self.after_shape: list[int] = []
        self.scaled: ActivationKind | Literal[""] = ""
        self.broadcast: tuple[list[int], list[int]] | None = None
        self.bare = self.signed = self.weighted = False
        self.given: Given | None = None

    def fed_by(self, node: Any) -> None:
        """The activation right in front of a node, if there is one."""
        beneath = through_views(only(node))
        name = name_of(beneath) if beneath is not None else ""
        self.after = FED_BY.get(name, "") or hidden_state(node)
        self.after_dim = _number(beneath, "_saved_dim") if name in FED_BY else None
        self.after_shape = shape_of(beneath) or [] if self.after else []

    def scaled_by(self, node: Any, saved: SavedTensors) -> None:
        """What it is given is the result of a bounded activation, times numbers that do not learn."""
        product = scaled(node, saved) if self.given is not None and not self.after else None
        prediction: Any = self.given.prediction if self.given is not None else None
        if product is None or prediction is None or self.given is None:
            return
        factor = product.factor
        if factor.is_cpu and factor.numel() and not any(factor.stride()):  # one number, which may be for a GPU
            factor = prediction.new_full((), float(factor[(0,) * factor.dim()])).expand_as(prediction)
        if factor.shape != prediction.shape:
            factor = factor.reshape(prediction.shape) if factor.numel() == prediction.numel() < MAX_RESHAPED else None
        if factor is not None and factor.device == prediction.device:
            self.scaled, self.given.factor = product.kind, factor


class KnownHead:
    """One loss function, at one call of backward, with what it was given over the sampled batches."""

    def __init__(self, head: Head, site: Site | None, called: Site | None, copies: gpu.Copies) -> None:
        self.head, self.site, self.called = head, site, called
        self.times = 0
        self.targets = TargetStats(head.op, copies, head.scaled)

    def take(self, given: Given, frame: FrameType | None) -> None:
        if self.head.op == "ctc":
            self.targets.take_log_probabilities(given.prediction)
            return
        dispatch.ask("data", "loss_given", given.target, self.head.op, given.ignored)
        self.targets.take(given.target, given.prediction, given.dim, given.ignored, given.factor)
        if self.targets.batches == 1 and given.target is not None:
            self.targets.look_for_ids(given.target, script_lines.user_frame(frame))

    def record(self) -> LossHead:
        head = self.head
        return LossHead(
            op=head.op, times=self.times, site=self.site, called=self.called, shape=head.shape, dim=head.dim,
            after=head.after, after_dim=head.after_dim, after_shape=head.after_shape, scaled=head.scaled,
            broadcast=head.broadcast, bare=head.bare, signed=head.signed, weighted=head.weighted,
            target=self.targets.record(), prediction=self.targets.predictions.record(),
        )  # fmt: skip


class Heads:
    """The loss functions of the training."""

    def __init__(self, saved: SavedTensors, copies: gpu.Copies) -> None:
        self._saved, self._copies = saved, copies
        self._known: dict[tuple[object, ...], KnownHead] = {}
        self._looks = CROSSINGS

    def note(self, root: Any, frame: FrameType | None) -> None:
        """Read the end of a graph."""
        head = find(root, self._saved)
        if (head is None or head.broadcast is None) and self._looks:
            self._looks -= 1
            head = self._crossed(root) or head
        if head is None:
            return
        called = user_code.site_of(frame)
        key = head.op, head.after, head.after_dim, head.scaled, head.broadcast is not None, called[1] if called else 0
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MAX_HEADS:
                return
            site = script_lines.loss_line(frame, head.op) or called
            known = self._known[key] = KnownHead(head, site, called, self._copies)
        known.times += 1
        given, head.given = head.given, None  # the graph's own tensors are not kept
        if given is not None:
            known.take(given, frame)

    def _crossed(self, root: Any) -> Head | None:
        crossed = crossed_loss.find(root, self._saved)
        if crossed is None:
            return None
        head = Head("own", root)
        head.broadcast = crossed
        return head

    def records(self) -> list[LossHead]:
        return [known.record() for known in self._known.values()]


def find(root: Any, saved: SavedTensors) -> Head | None:
    """The loss function at the end of the graph; None where it is none that is known."""
    waiting: deque[tuple[Any, list[Any]]] = deque([(root, [])])
    seen = {root}
    while waiting:
        node, above = waiting.popleft()
        name = name_of(node)
        if name == "LogSoftmaxBackward" and not above:
            return None
        head = _at(node, name, above, saved)
        if head is not None:
            head.signed = all(kind_of(over) in KEEP_SIGN for over in above)
            return head
        if len(above) < MAX_ABOVE and kind_of(node) in ABOVE:
            for following in graph_reading.before(node):
                if following not in seen:
                    seen.add(following)
                    waiting.append((following, [*above, node]))
    return None


def _at(node: Any, name: str, above: list[Any], saved: SavedTensors) -> Head | None:
    if name in LOSSES:
        return _of_loss(node, LOSSES[name], saved, alone=not above)
    if name == "LogSoftmaxBackward":  # cross entropy with probabilities as targets has no node of its own
        return _of_probabilities(node, above, saved)
    if name == "PowBackward" or name == "AbsBackward":
        head = _of_difference(node, name, saved)
        if head is not None:
            head.bare = [name_of(over) for over in above] == ["MeanBackward"]
        return head
    return None


def _of_loss(node: Any, op: LossOp, saved: SavedTensors, *, alone: bool) -> Head:
    given = only(node)
    head = Head(op, given)
    head.fed_by(node)
    beneath = through_views(given) if op in ("nll", "ctc") else given
    if beneath is not None and name_of(beneath) == "LogSoftmaxBackward":
        head.op = "cross_entropy" if op == "nll" else op
        head.shape, head.dim = shape_of(beneath) or [], _number(beneath, "_saved_dim")
        head.fed_by(beneath)
    if given is not None and name_of(given) == "ExpandBackward":
        inner = only(given)
        head.broadcast = (shape_of(inner) or [] if inner is not None else [], shape_of(given) or [])
    weight = saved.of(node, "_saved_weight")
    head.bare = alone and weight is None and getattr(node, "_saved_reduction", 1) == 1
    head.weighted = weight is not None or saved.of(node, "_saved_pos_weight") is not None
    if op in KEEP_TARGET:
        ignored = _number(node, "_saved_ignore_index")
        head.given = Given(saved.of(node, "_saved_target"), saved.of(node, "_saved_self"), ignored=ignored)
        head.scaled_by(given, saved)
    elif op == "ctc":
        head.given = Given(None, saved.of(node, "_saved_log_probs"))
    return head


def _of_probabilities(node: Any, above: list[Any], saved: SavedTensors) -> Head:
    """Sum of target times log softmax: the product keeps the target."""
    head = Head("log_softmax", node)
    head.dim = _number(node, "_saved_dim")
    head.fed_by(node)
    product = above[-1]
    sides = [following for following, _ in product.next_functions]
    if name_of(product) == "MulBackward" and len(sides) == 2 and None in sides:
        target = saved.of(product, "_saved_other" if sides[0] is node else "_saved_self")
        result = saved.of(node, "_saved_result")
        if target is not None and result is not None and target.shape == result.shape:
            head.given = Given(target, result, head.dim or 0)
    head.bare = [name_of(over) for over in above] == PROBABILITIES
    return head


def _of_difference(node: Any, name: str, saved: SavedTensors) -> Head | None:
    """A loss written out: the square or the absolute value of a difference."""
    difference = only(node)
    if difference is None or name_of(difference) not in ("SubBackward", "RsubBackward"):
        return None
    head = Head("squared" if name == "PowBackward" else "absolute", difference)
    head.broadcast = _blown_up(difference)
    head.fed_by(difference)
    sides = [following for following, _ in difference.next_functions]
    prediction = output(next((side for side in sides if side is not None), None), saved) if None in sides else None
    value = saved.of(node, "_saved_self")
    if prediction is not None and value is not None and prediction.shape == value.shape:
        target = prediction - value if sides[0] is not None else prediction + value
        head.given = Given(torch.round(target, decimals=4), prediction)
        head.scaled_by(next(side for side in sides if side is not None), saved)
    return head


def _blown_up(difference: Any) -> tuple[list[int], list[int]] | None:
    """The side of a difference that has a gradient, where the result is larger than it: it was broadcast."""
    sides = list(graph_reading.before(difference))
    if len(sides) != 1:  # both come from the model: distances between its outputs
        return None
    side = only(sides[0]) if name_of(sides[0]) == "ExpandBackward" else sides[0]
    shape, whole = shape_of(side) if side is not None else None, shape_of(difference)
    return (shape, whole) if shape is not None and whole and size_of(shape) < size_of(whole) else None


def _number(node: Any, name: str) -> int | None:
    return signed(getattr(node, name, None))
