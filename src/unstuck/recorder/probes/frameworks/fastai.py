"""fastai: a Learner counts its epochs and iterations; its Recorder has the names of the columns it prints."""

from __future__ import annotations

from typing import Any

from .library_loops import held, number

PACKAGES = ("fastai",)
_COLUMNS = ("epoch", "time")  # of the table, that are no metrics


def read(drivers: list[Any]) -> dict[str, Any]:
    learner = drivers[0]
    columns = held(learner, "recorder.metric_names.items")
    shown = columns if type(columns) is list else []
    return {
        "epoch": number(learner, "epoch"),
        "epochs": number(learner, "n_epoch"),
        "global_step": number(learner, "train_iter"),
        "metrics": [name for name in shown if type(name) is str and name not in _COLUMNS],
    }
