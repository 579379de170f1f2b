"""What a step does to each parameter: the gradient before it, the weight, and by how much it moved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ... import flight, gpu
from . import fitted_update
from .optimizers import COSINES, Optimizer, Optimizers, is_dense, within
from .parameters import Parameters

GPU_ELEMENTS = 1_000_000  # of a model on a GPU that are copied there
MAX_POINTS = COSINES  # of each curve


class Updates:
    def __init__(self, parameters: Parameters, optimizers: Optimizers, copies: gpu.Copies) -> None:
        self._parameters, self._optimizers, self._copies = parameters, optimizers, copies
        self._before: dict[int, tuple[int, list[Any], bool]] = {}
        """By optimizer: the step, what it may change now, as it was, and whether the gradients are yet to come."""
        self._begun = False
        self._gradients: dict[int, Any] = {}  # by parameter, of an update that the script writes out itself

    def before(self, optimizer: Any, closure: bool = False) -> None:
        """In a sampled step: norms of gradients and weights, and a copy to see by how much each moves. A closure makes
        the gradients within the step: now there are none, or those of the step before."""
        entry = self._optimizers.known(optimizer)
        if optimizer is None:
            entry.choose([parameter for ref in self._parameters.last_reached if (parameter := ref()) is not None])
        chosen = self._readable(entry)
        with torch.no_grad():
            if optimizer is None:
                self._read_by_hand(chosen)
            elif not closure:
                self._read_sizes(chosen, chosen, flight.steps())
            self._before[id(optimizer)] = flight.steps(), [parameter.detach().clone() for parameter in chosen], closure

    def at_first_backward(self) -> None:
        """Where no optimizer was made, the first update is one by hand, if there is any."""
        if not self._begun and not self._optimizers.built:
            self.before(None)
        self._begun = True

    def _read_sizes(self, chosen: list[Any], weights: list[Any], step: int) -> None:
        """`weights`: the parameters as they were before the step."""
        known = self._parameters.known
        for parameter in chosen:
            entry = known[id(parameter)]
            entry.seen += 1
            entry.requires = bool(parameter.requires_grad)
            entry.none += parameter.grad is None
        graded = [(p, weight) for p, weight in zip(chosen, weights, strict=True) if is_dense(p.grad)]
        if not graded:
            return
        entries = [known[id(parameter)] for parameter, _ in graded]

        def take(values: list[float]) -> None:
            for entry, grad, weight in zip(entries, values[: len(entries)], values[len(entries) :], strict=True):
                entry.zero += grad == 0.0
                _keep(entry.grads, (step, grad))
                _keep(entry.weights, weight)

        self._copies.numbers([_norm(p.grad) for p, _ in graded] + [_norm(weight) for _, weight in graded], take)

    def _read_by_hand(self, chosen: list[Any]) -> None:
        """The script may have its gradients elsewhere, or has cleared them by now: none is no sign of anything."""
        for parameter in [parameter for parameter in chosen if gpu.near(parameter)]:
            entry = self._parameters.known[id(parameter)]
            entry.seen += 1
            _keep(entry.weights, float(_norm(parameter)))

    def accumulated(self) -> None:
        """After a backward pass whose gradients the script uses itself."""
        if self._optimizers.built and not self._before:
            return  # the first step of an optimizer is to come
        reached = [parameter for ref in self._parameters.last_reached if (parameter := ref()) is not None]
        self.given(reached, [parameter.grad for parameter in reached])

    def given(self, leaves: list[Any], gradients: Sequence[Any]) -> None:
        """Gradients for an update that the script makes itself, of `autograd.grad` or a backward pass."""
        room = fitted_update.MAX_ELEMENTS
        self._gradients = {}
        with torch.no_grad():
            for leaf, gradient in zip(leaves, gradients, strict=True):
                entry = self._parameters.get(leaf)
                if entry is not None and is_dense(gradient) and gpu.near(gradient):
                    norm = float(_norm(gradient))
                    entry.zero += norm == 0.0
                    _keep(entry.grads, (flight.steps(), norm))
                    room -= int(gradient.numel())
                    if room >= 0:
                        self._gradients[id(leaf)] = gradient.detach().clone()

    def after(self, optimizer: Any, entry: Optimizer) -> None:
        """After it: how far each moved, and whether in the same direction as the step before."""
        step, before, closure = self._before.pop(id(optimizer), (0, [], False))
        chosen = self._readable(entry) if before else []
        if not before or len(chosen) != len(before):
            return
        moved = [self._parameters.known[id(parameter)] for parameter in chosen]

        def take(values: list[float]) -> None:
            for parameter, move in zip(moved, values, strict=True):
                _keep(parameter.moves, (step, move))

        with torch.no_grad():
            if closure:
                self._read_sizes(chosen, before, step)
            moves = [parameter.detach() - copy for parameter, copy in zip(chosen, before, strict=True)]
            self._copies.numbers([_norm(move) for move in moves], take)
            if optimizer is None:
                self._fit(entry, chosen, before, moves, step)
            self._compare(entry, torch.cat([move.reshape(-1).float() for move in moves]))

    def _fit(self, entry: Optimizer, chosen: list[Any], before: list[Any], moves: list[Any], step: int) -> None:
        """The rate, momentum and decay of an update written by hand, from what it did."""
        self._parameters.own(chosen, 0)
        gradients = [self._gradients.get(id(parameter)) for parameter in chosen]
        self._gradients = {}
        if any(gradient is None for gradient in gradients):
            return
        moved, gradient, weight = (fitted_update.joined(each) for each in (moves, gradients, before))
        if not moved.any():
            precision = max(torch.finfo(weight.dtype).eps for weight in before)
            stays = entry.unmoved is not None and torch.equal(entry.unmoved, weight)  # not even in the steps between
            if stays and entry.lrs and fitted_update.would_move(entry.lrs[-1][1], gradient, weight, precision):
                entry.note_rate_gone(step)
            entry.unmoved = weight
            return
        entry.unmoved = None
        one_before = entry.last_move if entry.steps - entry.last_at == 1 else None
        if one_before is None:  # with momentum, the rate alone would not be the whole of it
            return
        fit = fitted_update.fit(moved, gradient, weight, one_before)
        if fit is not None:
            entry.note_fit(fit, step)

    def _compare(self, entry: Optimizer, moved: Any) -> None:
        """The direction of this update with that of the one before, where it was just before."""

        def take(values: list[float]) -> None:
            dot, size, last_size = values
            if size > 0 and last_size > 0:
                _keep(entry.cosines, dot / (size * last_size))

        last = entry.last_move
        if last is not None and entry.steps - entry.last_at == 1 and last.shape == moved.shape:
            self._copies.numbers([torch.dot(moved, last), _norm(moved), _norm(last)], take)
        entry.last_move, entry.last_at = moved, entry.steps

    def _readable(self, entry: Optimizer) -> list[Any]:
        """Those of its parameters that are read: on the CPU; or, where the first is on a GPU, a few on that one."""
        living = [p for ref in entry.chosen if (p := ref()) is not None and self._parameters.get(p) is not None]
        dense = [parameter for parameter in living if not parameter.is_sparse and parameter.is_floating_point()]
        if not dense or not gpu.away(dense[0]):
            return [parameter for parameter in dense if parameter.is_cpu]
        return within(GPU_ELEMENTS, [parameter for parameter in dense if parameter.device == dense[0].device])


def _norm(tensor: Any) -> Any:
    return torch.linalg.vector_norm(tensor.detach().float())


def _keep(points: list[Any], point: Any) -> None:
    """The first ones, and ever fewer of the later ones."""
    points.append(point)
    if len(points) > MAX_POINTS:
        del points[MAX_POINTS // 3 : -1 : 2]
