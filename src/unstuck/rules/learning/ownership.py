"""What the rules about ownership share: names and sizes of parameters in words, findings, places."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from unstuck.recorder.records import Site
from unstuck.recorder.records.learning import Parameter
from unstuck.rules.learning.measured import layer_of

FEWEST = 24
"""Numbers of a matrix whose spread shows that they were drawn at random."""


def layers(parameters: Iterable[Parameter], most: int = 4) -> str:
    """`model.hidden[0]`, `model.hidden[1]` and 3 more"""
    names: list[str] = []
    for each in parameters:
        name = layer_of(each) or each.name or f"a parameter {list(each.shape)}"
        if name not in names:
            names.append(name)
    return listed(names, most)


def listed(names: Sequence[str], most: int = 4) -> str:
    if len(names) > most:
        return ", ".join(f"`{name}`" for name in names[:most]) + f" and {len(names) - most} more"
    return ", ".join(f"`{name}`" for name in names)


def count(parameters: Iterable[Parameter]) -> str:
    every = list(parameters)
    numbers = sum(each.numel for each in every)
    return f"{len(every)} parameter{'s' if len(every) != 1 else ''} ({numbers:,} numbers)"


def matrices(parameters: Iterable[Parameter]) -> list[Parameter]:
    """Those of which it can be told whether they are random: large enough, and no biases and gains."""
    return [each for each in parameters if len(each.shape) > 1 and each.numel >= FEWEST]


def trained_before(parameters: Iterable[Parameter]) -> bool:
    """No matrix of them is random any more: left alone on purpose."""
    weights = matrices(parameters)
    return bool(weights) and not any(each.fresh for each in weights)


def line(site: Site | None) -> str:
    return f"{os.path.basename(site[0])}:{site[1]}" if site else "an unknown line"
