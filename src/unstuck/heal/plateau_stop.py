"""`unstuck.Plateau`: when the epoch mean no longer improves, lower the learning rate, then end the training."""

from __future__ import annotations

import math
from typing import Any, Literal

from unstuck.heal.act_lines import say
from unstuck.text import count


class Plateau:
    """Add the loss of every batch, and ask at the end of each epoch whether to stop:

        plateau = unstuck.Plateau(optimizer, patience=5, stop_after=15)
        for epoch in range(1000):
            for x, y in loader:
                ...
                plateau.add(loss, len(x))
            if plateau.end_epoch():
                break

    An epoch is better if its mean is, by more than the share `min_change` of the best so far. After `patience` epochs
    that are not, the rates of the optimizer are multiplied by `factor` (never below `min_rate`), and again after
    as many more; after `stop_after` epochs without a better one the training should stop. NaN is never better.
    """

    def __init__(
        self,
        optimizer: Any = None,
        *,
        patience: int = 5,
        factor: float = 0.1,
        min_rate: float = 0.0,
        stop_after: int | None = 15,
        mode: Literal["min", "max"] = "min",
        min_change: float = 1e-4,
    ) -> None:
        if optimizer is not None and not isinstance(getattr(optimizer, "param_groups", None), list):
            raise TypeError(f"Plateau takes an optimizer of torch.optim, or None, not {type(optimizer).__name__!r}")
        for name, epochs in (("patience", patience), ("stop_after", stop_after)):
            if (epochs is not None or name == "patience") and (type(epochs) is not int or epochs < 1):
                raise ValueError(f"Plateau: {name} must be a whole number of epochs, 1 or more, not {epochs!r}")
        for name, number in (("factor", factor), ("min_rate", min_rate), ("min_change", min_change)):
            if not isinstance(number, (int, float)):
                raise TypeError(f"Plateau: {name} must be a number, not {number!r}")
        if not 0 < factor < 1:
            raise ValueError(f"Plateau: factor must lie between 0 and 1, not {factor!r}: rates are multiplied by it")
        if mode not in ("min", "max"):
            raise ValueError(f"Plateau: mode must be 'min' (a loss) or 'max' (an accuracy), not {mode!r}")
        if not min_rate >= 0 or not min_change >= 0:
            raise ValueError("Plateau: min_rate and min_change must be 0 or more")
        self._optimizer, self._factor, self._min_rate = optimizer, factor, min_rate
        self._patience, self._stop_after = patience, stop_after
        self._mode, self._min_change = mode, min_change
        self.epoch = 0
        self.best: float | None = None
        self.best_epoch = 0
        self.mean: float | None = None
        """Of the epoch that ended last."""
        self.stopped = False
        self._waited = 0
        """Epochs since the best one or the last lower rate."""
        self._clear()

    def _clear(self) -> None:
        self._sum: Any = 0.0
        self._finite: Any = 0
        self._weight, self._batches = 0.0, 0

    def add(self, loss: Any, samples: float = 1) -> None:
        """The mean loss of a batch, a number or a tensor, and how many samples it is of. On a GPU nothing waits."""
        if not samples > 0:
            raise ValueError(f"Plateau.add(): a batch has samples, so not {samples!r} of them")
        if hasattr(loss, "detach"):
            loss = loss.detach()
            if loss.numel() != 1:
                raise ValueError(f"Plateau.add() takes the mean loss of a batch, not a tensor of {tuple(loss.shape)}")
            loss = loss.reshape(()).double() if loss.device.type != "mps" else loss.reshape(()).float()
        self._sum = self._sum + loss * samples
        self._finite = self._finite + (abs(loss) < math.inf)
        self._weight += samples
        self._batches += 1

    def end_epoch(self, value: float | None = None) -> bool:
        """The epoch has ended, with the mean of what was added or with `value` (of a validation, say).

        True where the training should stop."""
        if value is None:
            if not self._batches:
                raise ValueError("Plateau.end_epoch(): nothing was added in this epoch: call add(loss) or give a value")
            value = float(self._sum) / self._weight
        broken = self._batches - int(self._finite)
        batches = self._batches
        self._clear()
        self.epoch += 1
        self.mean = float(value)
        if not math.isfinite(self.mean):
            of = f" ({broken:,} of {batches:,} batches)" if broken else ""
            self._say(f"the mean is {'NaN' if self.mean != self.mean else 'Inf'}{of}: it does not count as better")
        if self._better(self.mean):
            self.best, self.best_epoch, self._waited = self.mean, self.epoch, 0
            return self.stopped
        self._waited += 1
        if self._stop_after is not None and self.epoch - self.best_epoch >= self._stop_after:
            self.stopped = True
            self._say(f"stop: {self._why()}")
        elif self._waited >= self._patience:
            self._waited = 0
            self._lower()
        return self.stopped

    def _better(self, value: float) -> bool:
        if not math.isfinite(value):
            return False
        if self.best is None:
            return True
        change = value - self.best if self._mode == "max" else self.best - value
        return change > self._min_change * abs(self.best)

    def _lower(self) -> None:
        changes = []
        for group in self._optimizer.param_groups if self._optimizer is not None else ():
            before = float(group["lr"])
            after = max(before * self._factor, self._min_rate)
            if after < before:
                if hasattr(group["lr"], "fill_"):
                    group["lr"].fill_(after)
                else:
                    group["lr"] = after
                changes.append(f"{before:.3g} → {after:.3g}")
        if changes:
            self._say(f"learning rate {', '.join(dict.fromkeys(changes))}: {self._why()}")

    def _why(self) -> str:
        if self.best is None:
            return f"no epoch had a finite mean in {count(self.epoch, 'epoch')}"
        waited = count(self.epoch - self.best_epoch, "epoch")
        return f"no better than {self.best:.6g} (epoch {self.best_epoch}) for {waited}, now {self.mean:.6g}"

    def _say(self, text: str) -> None:
        say("Plateau", f"epoch {self.epoch}: {text}")

    def state_dict(self) -> dict[str, Any]:
        """For a checkpoint at the end of an epoch."""
        return {name: getattr(self, name) for name in KEPT}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if not isinstance(state, dict):
            raise ValueError(f"not the state of an unstuck.Plateau, but {state!r:.80}")
        missing = [name for name in KEPT if name not in state]
        if missing:
            raise ValueError(f"not the state of an unstuck.Plateau: it lacks {', '.join(missing)}")
        for name in KEPT:
            setattr(self, name, state[name])


KEPT = ("epoch", "best", "best_epoch", "mean", "stopped", "_waited")
