"""Files of torch by which a stack shows what it is doing; every other module asks here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from unstuck.model import Frame

LOADER = "torch/utils/data/dataloader.py"
FETCH = "torch/utils/data/_utils/fetch.py"
DRAWS = "_next_index"
"""In LOADER: where the next indices are asked of the sampler."""
WORKER = "torch/utils/data/_utils/worker.py"
SPAWN = "torch/multiprocessing/spawn.py"
OPTIMIZER = "torch/optim/"
MODULE = "torch/nn/modules/module.py"
_AUTOGRAD = ("torch/autograd/graph.py", "torch/autograd/__init__.py", "torch/_tensor.py")
_RUNS_BACKWARD = frozenset(("backward", "grad", "_engine_run_backward"))


def is_backward(frame: Frame) -> bool:
    return frame.function.rpartition(".")[2] in _RUNS_BACKWARD and frame.file.endswith(_AUTOGRAD)


KEPT: tuple[tuple[str, str, frozenset[str]], ...] = (
    ("torch/utils/data/_utils/worker.py", "_worker_loop", frozenset(("worker_id", "num_workers", "idx", "task_id"))),
    ("torch/utils/data/_utils/fetch.py", "", frozenset(("idx", "possibly_batched_index"))),
    ("torch/utils/data/dataloader.py", "_next_data", frozenset(("worker_id", "index"))),
    ("torch/multiprocessing/spawn.py", "_wrap", frozenset(("i",))),
)
"""File, end of the function's name (any if empty), names. As torch 2.13 has them, and as its main branch does, where
the batch is `task_id`; another layout gives nothing, not nonsense."""
_INDEX = re.compile(r"-?\d+|'[^']{1,60}'|\"[^\"]{1,60}\"")
_INDICES = re.compile(r"\[(-?\d+(, -?\d+)*)?(, \.\.\.)?\]|\(-?\d+(, -?\d+)*,?\)")


def loader_locals(file: str, function: str, values: Iterable[Mapping[str, Any]]) -> tuple[tuple[str, str], ...]:
    """Of a frame's locals those that are kept: numbers, keys and lists of numbers."""
    last = function.rpartition(".")[2]
    for end, name, wanted in KEPT:
        if file.endswith(end) and last.endswith(name):
            return tuple(
                (value["name"], value["repr"])
                for value in values
                if value["name"] in wanted and is_index(value.get("repr") or "")
            )
    return ()


def is_index(text: str) -> bool:
    return bool(_INDEX.fullmatch(text) or _INDICES.fullmatch(text))


def all_locals(values: Iterable[Mapping[str, Any]]) -> tuple[tuple[str, str], ...]:
    """Every local, where the person asked for them."""
    return tuple((value["name"], value["repr"]) for value in values if value.get("repr"))
