"""Ignite: an Engine has a state; an evaluator runs inside a handler of the trainer."""

from __future__ import annotations

from typing import Any

from .library_loops import held, names, number

PACKAGES = ("ignite",)


def read(drivers: list[Any]) -> dict[str, Any]:
    engine = drivers[0]
    return {
        "epoch": number(engine, "state.epoch"),
        "epochs": number(engine, "state.max_epochs"),
        "global_step": number(engine, "state.iteration"),
        "metrics": [name for each in drivers for name in names(held(each, "state.metrics"))],
    }
