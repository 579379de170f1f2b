"""An exception in plain data: what it is, the frames it came through, what it came from, and what torch's own frames
among these hold that decides: the loss's labels, the file being saved, a batch's size.

Attributes are read by BaseException's own slots, so that nothing is run that a class of the user's puts in their place.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from itertools import islice
from types import FrameType, TracebackType
from typing import Any, Literal

from ... import attempts, objects, user_code
from ...records.deaths import Labels, Raised, TracedLine, Unpicklable

How = Literal["", "cause", "context", "hidden"]

FRAMES = 60  # that a record has
MOST_STEPS = 100_000  # of a traceback
MOST_CAUSES = 6  # of one exception
MESSAGE, NOTE = 2000, 500  # letters
LOSSES = ("cross_entropy", "nll_loss", "nll_loss2d", "multi_margin_loss")
MOST_LABELS = 50_000_000


def _slot(kind: type[BaseException], name: str) -> Any:
    return kind.__dict__[name].__get__


_trace = _slot(BaseException, "__traceback__")
_cause, _context = _slot(BaseException, "__cause__"), _slot(BaseException, "__context__")
_suppressed, _own = _slot(BaseException, "__suppress_context__"), _slot(BaseException, "__dict__")
_errno, _file, _second = _slot(OSError, "errno"), _slot(OSError, "filename"), _slot(OSError, "filename2")


def describe(error: BaseException) -> Raised:
    """With the exceptions it came from."""
    chain = [_one(cause, how) for cause, how in islice(_chained(error), 1, None)]
    return _one(error, "", chain)


def chained(error: BaseException) -> list[BaseException]:
    """The exception and what it came from."""
    return [cause for cause, _ in _chained(error)]


def _chained(error: BaseException) -> Iterator[tuple[BaseException, How]]:
    """What it was raised from; else what was being handled, which `from None` only hides from the print."""
    seen: set[int] = set()
    here: BaseException | None = error
    how: How = ""
    while here is not None and id(here) not in seen and len(seen) <= MOST_CAUSES:
        seen.add(id(here))
        yield here, how
        cause = _cause(here)
        how = "cause" if cause is not None else "hidden" if _suppressed(here) else "context"
        here = cause if cause is not None else _context(here)


def _one(error: BaseException, how: How, chain: list[Raised] | None = None) -> Raised:
    system = issubclass(type(error), OSError)
    notes = _own(error).get("__notes__")
    return Raised(
        type=objects.class_name(type(error)),
        message=text(error),
        frames=_lines(error),
        errno=errno_of(error) if system else None,
        files=files_of(error) if system else [],
        notes=[note[:NOTE] for note in notes[:4] if type(note) is str] if type(notes) is list else [],
        how=how,
        chain=chain or [],
    )


def text(error: BaseException) -> str:
    """Its message. This runs the `__str__` of an exception of the user's, as the interpreter does itself when it
    prints the last one, and as torch does with every exception that a worker hands over."""
    try:
        return str(error)[:MESSAGE]
    except Exception:  # one that cannot be printed
        return ""


def errno_of(error: BaseException) -> int | None:
    """Of an OSError."""
    number = _errno(error)
    return number if type(number) is int else None


def files_of(error: BaseException) -> list[str]:
    """That an OSError names."""
    names = [attempts.plain_path(name) for name in (_file(error), _second(error))]
    return [os.fsdecode(name) for name in names if name is not None]


def steps(error: BaseException) -> Iterator[TracebackType]:
    """Of its traceback, outermost first."""
    trace = _trace(error)
    for _ in range(MOST_STEPS):
        if trace is None:
            return
        yield trace
        trace = trace.tb_next


def _lines(error: BaseException) -> list[TracedLine]:
    """Innermost first, ours left out."""
    ours = (user_code.HERE, "<unstuck")
    theirs = (step for step in steps(error) if not step.tb_frame.f_code.co_filename.startswith(ours))
    return list(deque((_line(step.tb_frame, step.tb_lineno) for step in theirs), FRAMES))[::-1]


def stack(frame: FrameType | None) -> list[TracedLine]:
    """The lines that are being run, innermost first."""
    return [_line(caller, caller.f_lineno) for caller in islice(user_code.frames(frame), FRAMES)]


def _line(frame: FrameType, number: int) -> TracedLine:
    code = frame.f_code
    file = code.co_filename
    user = user_code.is_user_file(file)
    return os.path.abspath(file) if user and file[:1] != "<" else file, number, user_code.name_of(code), user


# --- torch's own frames --------------------------------------------------------------------------------------------


def torch_state(error: BaseException) -> tuple[Labels | None, list[int] | None, Unpicklable | None]:
    """The labels of a loss, the shape that batch normalisation refused, and what could not be pickled; each from the
    innermost frame that has it."""
    labels = batch_norm = pickling = None
    for cause in chained(error):
        for file, name, frame in _frames(cause):
            if file.endswith("torch/nn/functional.py"):
                if name == "_verify_batch_size":
                    batch_norm = [int(size) for size in frame.f_locals.get("size") or ()]
                elif name in LOSSES:
                    labels = _labels(frame.f_locals) or labels
            elif file.endswith(("popen_spawn_posix.py", "popen_forkserver.py")) and name == "_launch":
                from . import unpicklable

                pickling = unpicklable.find(frame.f_locals.get("process_obj"), text(cause))
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
            return number if type(number) is int else _named_worker(frame.f_locals.get("data"))
    return None


def _named_worker(wrapped: object) -> int | None:
    """As torch before 2.6 has it: in words, in the wrapper that the exception came in."""
    words = getattr(wrapped, "where", None) if type(wrapped).__name__ == "ExceptionWrapper" else None
    last = words.rpartition(" ")[2] if type(words) is str else ""
    return int(last) if last.isdecimal() else None


def _frames(error: BaseException) -> Iterator[tuple[str, str, FrameType]]:
    """File, function and frame, outermost first."""
    for step in steps(error):
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
    if target.device.type != "cpu" or target.is_floating_point() or not 0 < target.numel() <= MOST_LABELS or not given:
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
