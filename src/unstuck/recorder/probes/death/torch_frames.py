"""What torch's own frames of a traceback hold that decides: the loss's labels, the file being saved, a batch's size.

Only read where something has failed; nothing of the user's is called.
"""

from __future__ import annotations

import os

from ... import attempts
from ...records.deaths import Labels
from . import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType
    from typing import Any

    from ...records.deaths import Unpicklable

LOSSES = ("cross_entropy", "nll_loss", "nll_loss2d", "multi_margin_loss")
MOST = 50_000_000  # labels that are looked at


def read(error: BaseException) -> tuple[Labels | None, list[int] | None, Unpicklable | None]:
    """The labels of a loss, the shape that batch normalisation refused, and what could not be pickled; each from the
    innermost frame that has it."""
    labels = batch_norm = pickling = None
    for each in errors.chained(error):
        for file, name, frame in _frames(each):
            if file.endswith("torch/nn/functional.py"):
                if name == "_verify_batch_size":
                    batch_norm = [int(n) for n in frame.f_locals.get("size") or ()]
                elif name in LOSSES:
                    labels = _labels(frame.f_locals) or labels
            elif file.endswith(("popen_spawn_posix.py", "popen_forkserver.py")) and name == "_launch":
                pickling = _pickling(frame.f_locals.get("process_obj"), errors.text(each))
    return labels, batch_norm, pickling


def saving(error: BaseException) -> str | None:
    """The path that torch.save was writing to."""
    for file, name, frame in _frames(error):
        if name == "save" and file.endswith("torch/serialization.py"):
            return _path(frame.f_locals.get("f"))
    return None


def worker_of(error: BaseException) -> int | None:
    """Number of the DataLoader worker whose exception this is."""
    for file, name, frame in _frames(error):
        if name == "_process_data" and file.endswith("data/dataloader.py"):
            number = frame.f_locals.get("worker_idx")
            return number if type(number) is int else None
    return None


def _frames(error: BaseException) -> Iterator[tuple[str, str, FrameType]]:
    """File, function and frame, outermost first."""
    for step in errors.steps(errors.trace_of(error)):
        code = step.tb_frame.f_code
        yield code.co_filename, code.co_name, step.tb_frame


def _labels(local: dict[str, Any]) -> Labels | None:
    """Labels outside the classes, on the CPU only: a device may already be lost."""
    import torch

    scores: Any = local.get("input")
    target: Any = local.get("target")
    ignored = local.get("ignore_index", -100)
    if not issubclass(type(scores), torch.Tensor) or not issubclass(type(target), torch.Tensor):
        return None
    shape, given, device = list(target.shape), list(scores.shape), str(target.device)
    if target.device.type != "cpu" or target.is_floating_point() or not 0 < target.numel() <= MOST or not given:
        return Labels(shape=shape, scores=given, device=device)
    classes = int(given[1] if len(given) > 1 else given[0])
    with torch.no_grad():
        plain = target.detach().as_subclass(torch.Tensor).reshape(-1)
        wrong = ((plain < 0) | (plain >= classes)) & (plain != ignored)
        places = wrong.nonzero().reshape(-1)
        rest = plain[plain != ignored]
        first = int(places[0]) if places.numel() else None
        return Labels(
            shape=shape,
            scores=given,
            device=device,
            classes=classes,
            ignored=ignored,
            wrong=int(places.numel()),
            least=int(rest.min()) if rest.numel() else None,
            most=int(rest.max()) if rest.numel() else None,
            label=int(plain[first]) if first is not None else None,
            place=first * shape[0] // plain.numel() if first is not None else None,
        )


def _path(target: Any) -> str | None:
    """The path that torch.save writes to; of an open file, its name."""
    import io

    if type(target) in (io.BufferedWriter, io.FileIO, io.BufferedRandom):
        target = target.name
    path = attempts.plain_path(target)
    return os.path.abspath(os.fsdecode(path)) if path is not None else None


def _pickling(process: Any, message: str) -> Unpicklable | None:
    from . import unpicklable

    return unpicklable.find(process, message)
