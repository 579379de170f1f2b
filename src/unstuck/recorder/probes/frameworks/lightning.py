"""Lightning: a Trainer keeps its counts in the progress of its loops, and what was logged by the step that did."""

from __future__ import annotations

from typing import Any

from .library_loops import held, names, number

PACKAGES = ("lightning", "pytorch_lightning")
_STEPS = "fit_loop.epoch_loop.automatic_optimization.optim_progress.optimizer.step.total.completed"
_BY_HAND = "fit_loop.epoch_loop.manual_optimization.optim_step_progress.total.completed"
_RESULTS = ("fit_loop.epoch_loop._results", "fit_loop.epoch_loop.val_loop._results")


def read(drivers: list[Any]) -> dict[str, Any]:
    trainer = drivers[0]
    logged = [key.partition(".")[2] or key for path in _RESULTS for key in names(held(trainer, path))]
    steps = [found for path in (_STEPS, _BY_HAND) if (found := number(trainer, path)) is not None]
    return {
        "epoch": number(trainer, "fit_loop.epoch_progress.current.processed"),
        "epochs": number(trainer, "fit_loop.max_epochs"),
        "global_step": sum(steps) if steps else None,
        "metrics": logged + names(held(trainer, "_logger_connector._callback_metrics")),
    }
