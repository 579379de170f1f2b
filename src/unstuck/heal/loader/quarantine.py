"""Bad samples: a line of a file for each, a word on standard error for each act, and the limit above which it stops.

Silent data loss is worse than a crash: what is left out is written down before the batch is handed out without it.
"""

from __future__ import annotations

import errno
import json
import math
import os
import sys
import time
from dataclasses import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .care import Care

ENOUGH_DRAWN = 100  # samples of an epoch of unknown length from which on a share can be judged
_listeners: list[Callable[[Act], None]] = []


class LoaderError(RuntimeError):
    """`unstuck.DataLoader` cannot go on."""


class BadSampleError(LoaderError):
    """A sample hung or killed its worker, and `on_bad_sample` is "raise"."""


class TooManyBadSamples(LoaderError):
    """More samples are bad than `max_bad` allows."""


class WorkersKeepDying(LoaderError):
    """More workers were replaced than `max_restarts` allows."""


@dataclass(frozen=True)
class Act:
    """Something the loader did about a fault; `what` is a sentence for people."""

    kind: str
    """ "quarantined", "replaced worker" or "gave up"."""
    what: str
    sample: Any = None
    worker: int | None = None
    reason: str = ""


def heard_by(listener: Callable[[Act], None]) -> Callable[[], None]:
    """Call it at every act from here on; gives what ends that."""
    _listeners.append(listener)
    return lambda: _listeners.remove(listener)


def tell(act: Act) -> None:
    try:
        print(f"unstuck: {act.what}", file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):
        pass
    for listener in _listeners:
        listener(act)


@dataclass(frozen=True)
class BadSample:
    """One row of the quarantine file."""

    sample: Any
    """The key that the sampler drew; of a stream, how many items came before it in its worker."""
    reason: str
    """ "raised", "hung", "killed its worker", "collate" (it does not fit the others) or "known"."""
    what: str
    traceback: str = ""
    worker: int | None = None
    batch: int | None = None
    epoch: int = 0
    replaced_by: Any = None


@dataclass
class Quarantine:
    """Of one loader."""

    care: Care
    path: str | None = None
    length: int | None = None
    """Samples of an epoch, where that is known."""
    rows: list[BadSample] = field(default_factory=list)
    epoch: int = -1
    drawn: int = 0
    """Samples drawn in this epoch;"""
    here: int = 0
    """that were bad."""
    restarts: int = 0
    """Workers replaced in this epoch."""
    deadly: dict[Any, BadSample] = field(default_factory=dict)
    """Samples that hung or killed their worker: they are not tried again in later epochs."""

    def begin_epoch(self) -> None:
        self.epoch += 1
        self.drawn = self.here = self.restarts = 0

    def known(self, sample: Any) -> BadSample | None:
        try:
            return self.deadly.get(sample)
        except TypeError:  # a key that cannot be hashed
            return None

    def add(self, row: BadSample) -> None:
        """Raises where that is one too many."""
        self.here += 1
        self.rows.append(row)
        self._write(row)
        if row.reason in ("hung", "killed its worker"):
            try:
                self.deadly[row.sample] = row
            except TypeError:
                pass
        done = "left out"
        if self.care.on_bad_sample == "replace":
            other = "another one of its batch" if row.replaced_by is None else f"sample {shown(row.replaced_by)}"
            done = f"{other} takes its place"
        said = f"sample {shown(row.sample)} is bad ({row.what or row.reason}); {done}"
        tell(Act("quarantined", said + (f", see {self.path}" if self.path else ""), row.sample, row.worker, row.reason))
        allowed = self.allowed()
        if allowed is not None and self.here > allowed:
            raise TooManyBadSamples(
                f"{self.here} of {self.drawn:,} samples drawn in epoch {self.epoch} are bad, and "
                f"max_bad={self.care.max_bad} allows {allowed}. "
                f"The last one: sample {shown(row.sample)}, {row.what or row.reason}. "
                + (f"All of them are in {self.path}." if self.path else 'quarantine="bad.jsonl" would list them.')
            )

    def allowed(self) -> int | None:
        """Bad samples in this epoch; None while there is no telling."""
        limit = self.care.max_bad
        if isinstance(limit, int):
            return limit
        if self.length is not None:
            return math.ceil(limit * self.length)
        return math.ceil(limit * self.drawn) if self.drawn >= ENOUGH_DRAWN else None

    def restarted(self, why: str) -> None:
        """A worker is to be replaced. Raises where that is one too many."""
        self.restarts += 1
        if self.restarts > self.care.max_restarts:
            raise WorkersKeepDying(
                f"{self.restarts} workers were lost in epoch {self.epoch}, and max_restarts={self.care.max_restarts}. "
                f"The last one {why}."
            )

    def _write(self, row: BadSample) -> None:
        if self.path is None:
            return
        about: dict[str, Any] = {"sample": plain(row.sample), "reason": row.reason, "what": row.what}
        about.update(worker=row.worker, batch=row.batch, epoch=row.epoch, replaced_by=plain(row.replaced_by))
        about.update(traceback=row.traceback, time=time.strftime("%Y-%m-%dT%H:%M:%S%z"), pid=os.getpid())
        line = (json.dumps(about) + "\n").encode()
        try:
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                if (written := os.write(handle, line)) < len(line):  # no half line stays
                    os.ftruncate(handle, os.fstat(handle).st_size - written)
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            finally:
                os.close(handle)
        except OSError as error:
            raise LoaderError(
                f"cannot write bad sample {shown(row.sample)} ({row.what or row.reason}) to {self.path}: "
                f"{error.strerror}. Nothing is left out that cannot be written down."
            ) from error


def check_writable(path: str) -> None:
    """Before the first sample is fetched."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666))
    except OSError as error:
        raise ValueError(
            f"quarantine={path!r} cannot be written: {error.strerror}. Name a file in a folder that exists"
        ) from error


def plain(key: Any) -> Any:
    """A key as JSON knows it; else as text."""
    if key is None or type(key) in (int, str, float, bool):
        return key
    if type(key) in (list, tuple):
        return [plain(part) for part in key]
    index = getattr(type(key), "__index__", None)  # numpy's integers and tensors of one
    try:
        return int(index(key)) if index is not None else repr(key)
    except Exception:
        return repr(key)


def shown(key: Any) -> str:
    text = repr(plain(key))
    return text if len(text) <= 80 else text[:77] + "…"
