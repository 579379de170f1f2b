"""Python stacks from outside: py-spy first, and a ladder that says why a better source could not be used."""

from __future__ import annotations

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from unstuck.model import Frame

from .torch_files import all_locals, loader_locals

TIME_LIMIT = 3.0  # seconds for one dump
MAX_TRIES = 4  # a deep stack may change while it is read, since nothing is stopped: then it is read again
MAX_UNANSWERED = 2  # dumps of one process; then it is not tried again
MOVED = "Failed to get stack traces"  # what py-spy says where the stack changed
Locals = Literal["none", "loader", "all"]  # which are kept; "loader": those that number workers, batches and samples


@dataclass(frozen=True, slots=True)
class PythonThread:
    """A thread as the interpreter knows it."""

    ident: int  # `threading.get_ident()`: the address of its pthread
    frames: tuple[Frame, ...]
    tid: int | None = None  # the kernel's number, where the interpreter keeps it (3.11 and later)
    name: str = ""
    native: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stacks:
    """Newest thread first, as the interpreter lists them; none if this source could not see."""

    threads: tuple[PythonThread, ...] = ()
    by: str = ""
    missing: str = ""  # why a better source could not be used; with no threads, why none could


class StackTaker(Protocol):
    def take(self, pids: Sequence[int]) -> Mapping[int, Stacks]:
        """Stacks of each pid; must answer for every one, and never raise."""


class Ladder:
    """Tries each source in turn for what those before could not see."""

    def __init__(self, *sources: StackTaker) -> None:
        self._sources = sources

    def take(self, pids: Sequence[int]) -> Mapping[int, Stacks]:
        taken = dict.fromkeys(pids, Stacks())
        for source in self._sources:
            left = [pid for pid in pids if not taken[pid].threads]
            for pid, stacks in source.take(left).items() if left else ():
                reasons = [reason for reason in (taken[pid].missing, stacks.missing) if reason]
                taken[pid] = Stacks(stacks.threads, stacks.by, "; ".join(reasons))
        return taken


class PySpy:
    """`py-spy dump`, one process per call, several calls at a time, each ended at the time limit.

    It only reads memory, nothing is stopped. A native look has to stop the target for some milliseconds,
    so it is not the default.
    """

    def __init__(
        self,
        binary: str | None = None,
        *,
        limit: float = TIME_LIMIT,
        native: bool = False,
        locals: Locals = "none",
    ) -> None:
        self._binary = binary or find_py_spy()
        self._limit = limit
        self._mode = "--native" if native else "--nonblocking"
        self._locals = locals
        self._no_answer = f"py-spy: no answer within {limit:g} s"
        self._unanswered: dict[int, int] = {}

    def take(self, pids: Sequence[int]) -> Mapping[int, Stacks]:
        if self._binary is None:
            return dict.fromkeys(pids, Stacks(missing="py-spy: not found (pip install py-spy)"))
        width = 2 * (os.cpu_count() or 1)
        left = [pid for pid in pids if self._unanswered.get(pid, 0) < MAX_UNANSWERED]
        taken = {pid: Stacks(missing=self._no_answer) for pid in pids if pid not in left}
        more = () if self._locals == "none" else ("--locals",)
        for _ in range(MAX_TRIES):
            for start in range(0, len(left), width):
                begun = [(pid, self._begin(pid, *more)) for pid in left[start : start + width]]
                for pid, dump in begun:
                    taken[pid] = dump if isinstance(dump, Stacks) else self._end(dump)
                    unanswered = taken[pid].missing == self._no_answer
                    self._unanswered[pid] = self._unanswered.get(pid, 0) + 1 if unanswered else 0
            left = [pid for pid in left if taken[pid].missing.endswith(MOVED)]
        return taken

    def local(self, pid: int, frame: Frame, name: str) -> str | None:
        """The value of one local variable of a frame, if it is a string. No other value is kept."""
        dump = self._begin(pid, "--locals") if self._binary else Stacks()
        if isinstance(dump, Stacks):
            return None
        try:
            return local_in(dump.result()[1], frame, name)
        except (ValueError, KeyError, TypeError, SyntaxError):
            return None

    def _begin(self, pid: int, *more: str) -> _Dump | Stacks:
        command = [str(self._binary), "dump", self._mode, *more, "--json", "--pid", str(pid)]
        try:
            return _Dump(command, time.monotonic() + self._limit)
        except OSError as error:
            return Stacks(missing=f"py-spy: {error.strerror or error}")

    def _end(self, dump: _Dump) -> Stacks:
        status, output, errors = dump.result()
        if status is None:
            return Stacks(missing=self._no_answer)
        if status != 0:
            return Stacks(missing=f"py-spy: {reason_in(errors)}")
        try:
            threads = parse_py_spy(output, self._locals)
        except (ValueError, KeyError, TypeError):
            return Stacks(missing="py-spy: its answer could not be read")
        return Stacks(threads, "py-spy") if threads else Stacks(missing="py-spy: no Python thread found")


class _Dump:
    """One running py-spy, in a group of its own, so that ending it ends whatever it started."""

    def __init__(self, command: list[str], deadline: float) -> None:
        self._deadline = deadline
        # Files in memory: a full disk must not hide the stacks, and a full pipe must not block py-spy.
        self._files = [os.fdopen(os.memfd_create("py-spy"), "w+b") for _ in ("output", "errors")]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._files[0],
                stderr=self._files[1],
                start_new_session=True,
                env={**os.environ, "RUST_BACKTRACE": "0"},
            )
        except OSError:
            for file in self._files:
                file.close()
            raise

    def result(self) -> tuple[int | None, str, str]:
        """The exit status (None if it had to be ended), what it wrote, and its errors."""
        status: int | None = None
        try:
            status = self._process.wait(max(0.0, self._deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        texts = []
        for file in self._files:
            with file:
                file.seek(0)
                texts.append("" if status is None else file.read().decode(errors="replace"))
        return status, texts[0], texts[1]


def own_frames(frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """A process forked by multiprocessing still carries the frames of its parent's `start()`: cut them off."""
    for depth, frame in enumerate(frames, 1):
        if frame.function.endswith("_launch") and frame.file.endswith("multiprocessing/popen_fork.py"):
            return frames[:depth]
    return frames


def find_py_spy() -> str | None:
    """Next to our own interpreter first, since it came with us."""
    return shutil.which("py-spy", path=os.path.dirname(sys.executable)) or shutil.which("py-spy")


def reason_in(errors: str) -> str:
    """The one line that matters in what py-spy wrote before it gave up."""
    if "permission denied" in errors.lower() or "operation not permitted" in errors.lower():
        return "Permission denied: ptrace is not allowed here"
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    first = next((line for line in lines if line.startswith("Error:")), lines[0] if lines else "failed silently")
    return first.removeprefix("Error:").strip()


def parse_py_spy(output: str, locals: Locals = "none") -> tuple[PythonThread, ...]:
    """The JSON of `py-spy dump --json`."""
    return tuple(
        PythonThread(
            ident=int(entry["thread_id"]),
            frames=tuple(_python_frames(entry["frames"], locals)),
            tid=entry.get("os_thread_id"),
            name=entry.get("thread_name") or "",
            native=tuple(frame["name"] for frame in entry["frames"] if frame.get("module")),
        )
        for entry in json.loads(output)
        if entry["frames"] is not None
    )


def _python_frames(frames: list[dict[str, Any]], locals: Locals) -> Iterator[Frame]:
    for frame in frames:
        if frame.get("module"):
            continue
        values = frame.get("locals") or ()
        kept = all_locals(values) if locals == "all" else loader_locals(frame["filename"], frame["name"], values)
        yield Frame(frame["filename"], int(frame["line"] or 0), frame["name"], arguments=kept)


def local_in(output: str, wanted: Frame, name: str) -> str | None:
    """A string local in the JSON of `py-spy dump --locals --json`."""
    for frame in (frame for entry in json.loads(output) for frame in entry["frames"]):
        if (frame["filename"], frame["line"]) == (wanted.file, wanted.line):
            for local in frame.get("locals") or ():
                if local["name"] == name:
                    value = ast.literal_eval(local["repr"])
                    return value if isinstance(value, str) else None
    return None
