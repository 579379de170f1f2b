"""transformers: a Trainer has a state, and a history of what it logged."""

from __future__ import annotations

from typing import Any

from .library_loops import held, names, number

PACKAGES = ("transformers",)
_COUNTS = ("epoch", "step", "learning_rate", "grad_norm", "total_flos")  # stand beside the metrics in each entry,
_SPEEDS = ("_runtime", "_per_second")  # and so do these


def read(drivers: list[Any]) -> dict[str, Any]:
    trainer = drivers[0]
    epoch, history = held(trainer, "state.epoch"), held(trainer, "state.log_history")
    entries = history[-4:] if type(history) is list else []
    best = held(trainer, "args.metric_for_best_model")
    logged = [name for entry in entries for name in names(entry) if name not in _COUNTS and not name.endswith(_SPEEDS)]
    return {
        "epoch": int(epoch) if type(epoch) in (int, float) else None,
        "epochs": number(trainer, "state.num_train_epochs"),
        "global_step": number(trainer, "state.global_step"),
        "metrics": ([best] if type(best) is str else []) + logged,
    }
