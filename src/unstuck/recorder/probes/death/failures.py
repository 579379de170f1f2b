"""Facts about failures, written where they happen: a sample that raises, a batch that does not come, the last error.

With them goes what is measured at that moment, for a second later it may be gone.
"""

from __future__ import annotations

import os
import sys
from _weakref import ref
from collections import deque

from ... import attempts, facts, flight
from ... import layout as at
from . import errors, resources, torch_frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Draw = tuple[int, int, int, Any]  # its number, that of the batch handed out meanwhile, the step, the indices

MOST = 1000  # samples that fail; a script may catch them and go on
KEPT = 192  # batches drawn that are remembered: more than are in flight
_failed = 0
_noted = 0  # id of the last error that was noted
_iterators: list[Callable[[], Any]] = []
latest: deque[Draw] | None = None
_other: deque[Draw] | None = None


def opened(iterator: Any) -> None:
    """Remember a pass over a loader, weakly: its workers hold descriptors."""
    if len(_iterators) > 16:
        _iterators[:] = [known for known in _iterators if known() is not None][-16:]
    _iterators.append(ref(iterator))


def living() -> list[Any]:
    """Iterators that are still there, each once, the oldest first."""
    found: dict[int, Any] = {}
    for known in _iterators:
        iterator = known()
        if iterator is not None:
            found[id(iterator)] = iterator
    return list(found.values())


def worker_exits(iterators: list[Any] | None = None) -> list[dict[str, object]]:
    """Every worker of the loaders that still run, and how it ended, as far as it has."""
    found: list[dict[str, object]] = []
    for iterator in living() if iterators is None else iterators:
        for number, worker in enumerate(iterator.__dict__.get("_workers") or ()):
            if getattr(worker, "_parent_pid", None) == os.getpid():
                found.append({"worker": number, "pid": worker.pid, "exitcode": worker.exitcode})
    return found


def batch_failed(iterator: Any, error: BaseException) -> None:
    exits = worker_exits([iterator])
    more: dict[str, object] = {"error": type(error).__name__, "worker": torch_frames.worker_of(error), "workers": exits}
    note("batch-failed", error, more)


def workers_failed(error: BaseException) -> None:
    """torch's handler of SIGCHLD raises in the middle of whatever main does."""
    note("batch-failed", error, {"error": type(error).__name__, "worker": None, "workers": worker_exits()})


def sample_failed(index: object, error: BaseException) -> None:
    global _failed, _noted
    _failed += 1
    _noted = id(error)
    if _failed > MOST:
        return
    sample, position = flight.words[at.W_SAMPLE], flight.words[at.W_POSITION]
    note("sample-failed", error, {**in_work(), "position": _position(index, sample, position)})


def in_work() -> dict[str, object]:
    """The sample in work in this process, and the file it opened last."""
    w = flight.words
    if not w[at.W_FETCHING]:
        return {"worker": _some(w[at.W_WORKER])}
    collating = w[at.W_POSITION] == at.COLLATING
    return {
        "worker": _some(w[at.W_WORKER]),
        "sample": None if collating else _some(w[at.W_SAMPLE]),
        "key": flight.text(at.W_KEY_LENGTH, at.KEY_AT, at.KEY_SIZE),
        "collating": collating,
        "opened": None if collating else attempts.last(),
    }


def _some(word: int) -> int | None:
    return None if word < 0 else word


def last_error(error: BaseException) -> None:
    """A process ends of this."""
    from ..memory import device

    more = {"workers": worker_exits(), "torch": torch_frames.read(error), "batches": batches()}
    note("exception", error, {**more, **in_work(), "device": device.at_death(error)})


def drawing(known: deque[Draw] | None) -> deque[Draw]:
    """A loader draws indices, and another one did before it. What was drawn is kept when the iterator is gone: an
    exception on its way out ends it."""
    global latest, _other
    drawn = deque(maxlen=KEPT) if known is None else known
    latest, _other = drawn, latest
    return drawn


def batches() -> list[dict[str, object]]:
    """The last batch handed out: its number and the indices that made it up. Two, if a step uses two loaders."""
    found: list[dict[str, object]] = []
    for drawn in [each for each in (latest, _other) if each]:
        number, step = drawn[-1][1], drawn[-1][2]
        if number < 0 or (drawn is not latest and step != flight.steps()):
            continue
        indices = next((list(i) for key, _, _, i in reversed(drawn) if key == number and _is_batch(i)), None)
        plain = indices is not None and all(type(each) is int for each in indices)
        size = len(indices) if indices is not None else None
        found.append({"number": number, "size": size, "indices": indices if plain else None})
    return found


def _is_batch(index: object) -> bool:
    return isinstance(index, (list, tuple)) and len(index) <= 100_000


def handed_over(error: BaseException | None) -> None:
    """A worker sends main an exception that did not come out of a fetch: of its start, or of the data set's iter()."""
    if error is not None and id(error) != _noted:
        note("sample-failed", error, {"worker": _some(flight.words[at.W_WORKER]), "starting": True})


def _position(index: object, sample: int, position: int) -> int | None:
    if position >= 0:
        return position
    if isinstance(index, (list, tuple)) and sample >= 0 and position != at.COLLATING:
        return next((place for place, each in enumerate(index) if type(each) is int and each == sample), None)
    return None


def note(kind: str, error: BaseException, more: dict[str, object] | None = None) -> None:
    """Write the fact. Nothing on this way may need a descriptor: there may be none left."""
    about = {**errors.describe(error), **(more or {}), "step": flight.steps(), "measured": measured(error)}
    facts.write(kind, about)


def measured(error: BaseException) -> dict[str, object]:
    """Descriptors and shared memory always; file systems if there was no room, or something was being saved."""
    workers = [int(worker.pid) for iterator in living() for worker in iterator.__dict__.get("_workers") or ()]
    found: dict[str, object] = {
        "descriptors": resources.descriptors(),
        "crowded": resources.crowded_workers(workers),
        "shared_memory": resources.shared_memory(workers),
        "sharing": _sharing_strategy(),
    }
    raised = [each for each in errors.chained(error) if isinstance(each, OSError)]
    saving = torch_frames.saving(error)
    if saving or any(each.errno in resources.NO_ROOM for each in raised):
        named = [name for each in raised for name in (each.filename, each.filename2) if isinstance(name, str)]
        named += [saving] if saving else []
        rooms = [resources.room(path) for path in dict.fromkeys(named or resources.written_paths())]
        found["file_systems"] = [room for room in rooms if room][:8]
    return found


def _sharing_strategy() -> str | None:
    module: Any = sys.modules.get("torch.multiprocessing")
    return getattr(module, "_sharing_strategy", None)
