"""Files of torch by which a stack shows what it is doing; every other module asks here."""

from __future__ import annotations

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
