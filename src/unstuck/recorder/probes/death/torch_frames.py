"""What torch's own frames of a traceback hold that decides: the loss's labels, the file being saved, a batch's size.

Only read when a process is about to end of the exception; nothing of the user's is called.
"""

from __future__ import annotations

import os

from . import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

LOSSES = ("cross_entropy", "nll_loss", "nll_loss2d", "multi_margin_loss")


def read(error: BaseException) -> dict[str, object]:
    """By kind, from the innermost frame that has it."""
    found: dict[str, object] = {}
    for each in errors.chained(error):
        for step in errors.steps(each.__traceback__):
            frame = step.tb_frame
            file, name = frame.f_code.co_filename, frame.f_code.co_name
            if file.endswith("torch/nn/functional.py"):
                _functional(found, frame, name)
            elif file.endswith(("popen_spawn_posix.py", "popen_forkserver.py")) and name == "_launch":
                found["pickling"] = _pickling(frame.f_locals.get("process_obj"), str(each))
    return found


def saving(error: BaseException) -> str | None:
    """The path that torch.save was writing to."""
    for step in errors.steps(error.__traceback__):
        frame = step.tb_frame
        if frame.f_code.co_name == "save" and frame.f_code.co_filename.endswith("torch/serialization.py"):
            return _path(frame.f_locals.get("f"))
    return None


def worker_of(error: BaseException) -> int | None:
    """Number of the DataLoader worker whose exception this is."""
    for step in errors.steps(error.__traceback__):
        frame = step.tb_frame
        if frame.f_code.co_name == "_process_data" and frame.f_code.co_filename.endswith("data/dataloader.py"):
            number = frame.f_locals.get("worker_idx")
            return number if isinstance(number, int) else None
    return None


def _functional(found: dict[str, object], frame: FrameType, name: str) -> None:
    if name == "_verify_batch_size":
        size = frame.f_locals.get("size")
        found["batch_norm"] = [int(n) for n in size] if size is not None else []
    elif name in LOSSES:
        labels = _labels(frame.f_locals)
        if labels is not None:
            found["labels"] = labels


def _labels(local: dict[str, Any]) -> dict[str, object] | None:
    """Labels outside the classes, on the CPU only: a device may already be lost."""
    import torch

    scores, target = local.get("input"), local.get("target")
    if not isinstance(scores, torch.Tensor) or not isinstance(target, torch.Tensor):
        return None
    about: dict[str, object] = {"shape": list(target.shape), "scores": list(scores.shape), "device": str(target.device)}
    if target.device.type != "cpu" or target.is_floating_point() or not target.numel() or not scores.dim():
        return about
    classes = int(scores.shape[1] if scores.dim() > 1 else scores.shape[0])
    ignored = local.get("ignore_index", -100)
    with torch.no_grad():
        plain = target.detach().as_subclass(torch.Tensor).reshape(-1)
        wrong = ((plain < 0) | (plain >= classes)) & (plain != ignored)
        places = wrong.nonzero().reshape(-1)
        rest = plain[plain != ignored]
        about.update(classes=classes, ignored=ignored, wrong=int(places.numel()))
        if rest.numel():
            about.update(least=int(rest.min()), most=int(rest.max()))
        if places.numel():
            first = int(places[0])
            about.update(label=int(plain[first]), place=first * int(target.shape[0]) // plain.numel())
    return about if places.numel() else {**about, "place": None}


def _path(target: object) -> str | None:
    """The path that torch.save writes to; of an open file, its name."""
    if isinstance(target, (str, os.PathLike)):
        return os.path.abspath(os.fspath(target))
    import io

    if isinstance(target, (io.BufferedWriter, io.FileIO, io.BufferedRandom)) and isinstance(target.name, str):
        return os.path.abspath(target.name)
    return None


def _pickling(process: Any, message: str) -> dict[str, object]:
    from . import unpicklable

    return unpicklable.find(process, message)
