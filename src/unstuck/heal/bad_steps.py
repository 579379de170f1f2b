"""What a guard knows of the steps so far, and what it does after bad ones: say so, halve the rate, roll back."""

from __future__ import annotations

import math
from typing import Any

import torch

from unstuck.heal.act_lines import say, worth_a_line
from unstuck.heal.good_state import GoodBuffers, Snapshots
from unstuck.heal.norm_history import NormHistory, harmful_times
from unstuck.text import count

GROW_AFTER_STEPS = 100  # good ones in a row, until a rate that was halved is doubled again
MIN_RATE = 2.0**-30  # halved thirty times and still bad: the rate is not the cause
COUNTS = ("steps", "skipped", "clipped", "rolled_back", "rate")


class StepRecord:
    """A step is bad if its gradient is not finite, or had to be scaled down."""

    def __init__(self, optimizer: Any, back_off_after: int, rollback: bool, model: Any, max_bad: int | None) -> None:
        self.steps = self.skipped = self.clipped = self.rolled_back = 0
        self.rate = 1.0
        """The share of the optimizer's learning rates in use: halved after bad steps, doubled after good ones."""
        self._optimizer, self._back_off_after, self._max_bad = optimizer, back_off_after, max_bad
        self._min_times = harmful_times(getattr(optimizer, "defaults", {}))
        self._history = NormHistory(min_times=self._min_times)
        self._snapshots = Snapshots(optimizer) if rollback else None
        self._buffers = GoodBuffers(model) if model is not None else None
        self._bad_in_a_row = self._good_in_a_row = 0

    def __repr__(self) -> str:
        words = f"{count(self.steps, 'step')}, {self.skipped:,} skipped, {self.clipped:,} clipped"
        return f"<unstuck.guard: {words}{f', rate × {self.rate:g}' if self.rate < 1 else ''}>"

    def state_dict(self) -> dict[str, Any]:
        """For a checkpoint. Snapshots are not in it: the checkpoint is one."""
        counts = {name: getattr(self, name) for name in COUNTS}
        norms = {"norms": self._history.norms, "highest": self._history.highest}
        return {**norms, "in_a_row": [self._bad_in_a_row, self._good_in_a_row], **counts}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        try:
            norms, highest = [float(norm) for norm in state["norms"]], float(state["highest"])
            history = NormHistory(norms, highest, self._min_times)
            bad, good = (int(number) for number in state["in_a_row"])
            counts = {name: type(getattr(self, name))(state[name]) for name in COUNTS}
            if not 0 < counts["rate"] <= 1:
                raise ValueError(f"a rate of {counts['rate']}")
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not the state of an unstuck.guard: {type(error).__name__}: {error}") from error
        self._history, self._bad_in_a_row, self._good_in_a_row = history, bad, good
        for name, value in counts.items():
            setattr(self, name, value)

    def _keep_good(self) -> None:
        if self._snapshots is not None:
            self._snapshots.before(self.steps)
        if self._buffers is not None:
            self._buffers.before(self.steps)

    def _note(self, step: int, norm: float, limit: float, usual: float) -> bool:
        """Take the norm of a step in. True if the weights were rolled back."""
        self._history.add(norm)
        if norm <= limit and norm < math.inf:
            self._bad_in_a_row = 0
            self._good_in_a_row += 1
            if self.rate < 1.0 and self._good_in_a_row % GROW_AFTER_STEPS == 0:
                self.rate *= 2
            return False
        self._good_in_a_row = 0
        self._bad_in_a_row += 1
        if norm < math.inf:
            self.clipped += 1
            self._say(self.clipped, step, f"gradient norm {norm:.3g}, usual up to {usual:.3g}: scaled down")
        else:
            self.skipped += 1
            self._say(self.skipped, step, f"gradient norm is {'NaN' if norm != norm else 'Inf'}: step skipped")
            self._mend_buffers(step)
        if self._max_bad is not None and self._bad_in_a_row >= self._max_bad:
            raise RuntimeError(self._hopeless(f"the last {count(self._bad_in_a_row, 'step')} all had a bad gradient"))
        again = self._snapshots is not None and self._bad_in_a_row % self._back_off_after == 0
        return self._back_off(step) if again or self._bad_in_a_row == self._back_off_after else False

    def _say(self, number: int, step: int, text: str) -> None:
        if worth_a_line(number):
            say("guard", f"step {step:,}: {text}" + (f" ({number:,} so far)" if number > 1 else ""))

    def _mend_buffers(self, step: int) -> None:
        mended = self._buffers.mend() if self._buffers is not None else []
        if mended and worth_a_line(self.skipped):
            say("guard", f"step {step:,}: restored {count(len(mended), 'buffer')} that it made NaN: {mended[0]} …")

    def _back_off(self, step: int) -> bool:
        """Halve the rate, and roll back where that was requested: True if it was."""
        self.rate /= 2
        if self.rate < MIN_RATE:
            raise RuntimeError(self._hopeless("the learning rate was halved thirty times, and gradients are still bad"))
        text = f"{count(self._bad_in_a_row, 'bad step')} in a row: learning rate × {self.rate:g}"
        back = self._snapshots.back_from(step + 1 - self._bad_in_a_row) if self._snapshots is not None else None
        if back is not None:
            self.rolled_back += 1
            text += f", weights back to those of step {back:,}"
        say("guard", f"step {step:,}: {text}")
        return back is not None

    def _hopeless(self, what: str) -> str:
        weights = [p for group in self._optimizer.param_groups for p in group["params"]]
        broken = sum(not bool(torch.isfinite(p).all()) for p in weights)
        if broken:
            return (
                f"unstuck.guard: {what}; {broken} of {len(weights)} parameters are NaN or Inf themselves. Go back to a "
                "checkpoint, and guard the optimizer with rollback=True"
            )
        return (
            f"unstuck.guard: {what}, though all parameters are finite. Look at the data and the loss: "
            "`unstuck run train.py` names the operation that makes the NaN"
        )
