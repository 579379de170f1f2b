"""Files of torch by which a stack shows what it is doing, and the locals of its loader that number samples."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from unstuck.model import Frame

LOADER = "torch/utils/data/dataloader.py"
FETCH = "torch/utils/data/_utils/fetch.py"
DRAWS = "_next_index"  # in LOADER: where the sampler gives the next indices
WORKER = "torch/utils/data/_utils/worker.py"
SPAWN = "torch/multiprocessing/spawn.py"
OPTIMIZER = "torch/optim/"
MODULE = "torch/nn/modules/module.py"
_AUTOGRAD = ("torch/autograd/graph.py", "torch/autograd/__init__.py", "torch/_tensor.py")
_RUNS_BACKWARD = frozenset(("backward", "grad", "_engine_run_backward"))

# File, end of the function's name (any if empty), names of locals. As torch 2.13 has them, and as its main branch does,
# where the batch is `task_id`; another layout gives nothing, not nonsense.
_KEPT_LOCALS = (
    (WORKER, "_worker_loop", ("worker_id", "num_workers", "idx", "task_id")),
    (FETCH, "", ("idx", "possibly_batched_index")),
    (LOADER, "_next_data", ("worker_id", "index")),
    (SPAWN, "_wrap", ("i",)),
)
_INDEX = re.compile(
    r"-?\d+|'[^']{1,60}'|\"[^\"]{1,60}\""  # a number or a key,
    r"|\[(-?\d+(, -?\d+)*)?(, \.\.\.)?\]|\(-?\d+(, -?\d+)*,?\)"  # or several numbers
)


def is_backward(frame: Frame) -> bool:
    return frame.function.rpartition(".")[2] in _RUNS_BACKWARD and frame.file.endswith(_AUTOGRAD)


def loader_locals(file: str, function: str, values: Iterable[Mapping[str, Any]]) -> tuple[tuple[str, str], ...]:
    """Of a frame's locals those that are kept: numbers, keys and lists of numbers of torch's loader, nobody else's."""
    last = function.rpartition(".")[2]
    for end, name, kept in _KEPT_LOCALS:
        if file.endswith(end) and last.endswith(name):
            return tuple((name, text) for name, text in all_locals(values) if name in kept and is_index(text))
    return ()


def is_index(text: str) -> bool:
    return _INDEX.fullmatch(text) is not None


def all_locals(values: Iterable[Mapping[str, Any]]) -> tuple[tuple[str, str], ...]:
    """Every local, where the person wants them."""
    return tuple((value["name"], value["repr"]) for value in values if value.get("repr"))
