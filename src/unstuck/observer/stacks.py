"""Python stacks from outside: py-spy first, and a ladder that says why a better rung could not be used."""

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
from typing import IO, Any, Literal, Protocol

from unstuck.model import Frame

from .torch_files import all_locals, loader_locals

TIME_LIMIT = 3.0
TRIES = 4
"""A deep stack may change while it is read, since nothing is stopped: then it is read again."""
PATIENCE = 2
"""So often it may not answer for a process; then it is not asked about that one again."""
MOVED = "Failed to get stack traces"
"""What py-spy says then."""
Locals = Literal["none", "loader", "all"]
"""Which locals are kept: none, those of torch's loader that number workers, batches and samples, or every one."""


@dataclass(frozen=True, slots=True)
class PythonThread:
    """A thread as the interpreter knows it."""

    ident: int
    """`threading.get_ident()`: the address of its pthread."""
    frames: tuple[Frame, ...]
    tid: int | None = None
    """The kernel's number, where the interpreter keeps it (3.11 and later)."""
    name: str = ""
    native: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stacks:
    """Newest thread first, as the interpreter lists them; none if this rung could not see."""

    threads: tuple[PythonThread, ...] = ()
    by: str = ""
    missing: str = ""
    """Why a better rung could not be used; with no threads, why none could."""


class StackTaker(Protocol):
    def take(self, pids: Sequence[int]) -> Mapping[int, Stacks]:
        """Stacks of each pid; must answer for every one, and never raise."""


class Ladder:
    """Asks each rung in turn for what the rungs before could not see."""

    def __init__(self, *rungs: StackTaker) -> None:
        self._rungs = rungs

    def take(self, pids: Sequence[int]) -> Mapping[int, Stacks]:
        taken = dict.fromkeys(pids, Stacks())
        for rung in self._rungs:
            left = [pid for pid in pids if not taken[pid].threads]
            if not left:
                break
            for pid, stacks in rung.take(left).items():
                whys = [why for why in (taken[pid].missing, stacks.missing) if why]
                taken[pid] = Stacks(stacks.threads, stacks.by, "; ".join(whys))
        return taken


class PySpy:
    """`py-spy dump`, one process per call, several calls at a time, each ended at the time limit.

    It only reads memory, nothing is stopped. A native look has to stop the target for some milliseconds,
    which is why it has to be asked for.
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
        self._hung: dict[int, int] = {}

    def take(self, pids: Sequence[int]) -> Mapping[int, Stacks]:
        if self._binary is None:
            return dict.fromkeys(pids, Stacks(missing="py-spy: not found (pip install py-spy)"))
        width = 2 * (os.cpu_count() or 1)
        left = [pid for pid in pids if self._hung.get(pid, 0) < PATIENCE]
        taken = {pid: Stacks(missing=self._no_answer) for pid in pids if pid not in left}
        for _ in range(TRIES):
            for start in range(0, len(left), width):
                begun = [(pid, self._begin(pid, *self._more)) for pid in left[start : start + width]]
                for pid, dump in begun:
                    taken[pid] = dump if isinstance(dump, Stacks) else self._end(dump)
                    hung = taken[pid].missing == self._no_answer
                    self._hung[pid] = self._hung.get(pid, 0) + 1 if hung else 0
            left = [pid for pid in left if taken[pid].missing.endswith(MOVED)]
            if not left:
                break
        return taken

    @property
    def _no_answer(self) -> str:
        return f"py-spy: no answer within {self._limit:g} s"

    @property
    def _more(self) -> tuple[str, ...]:
        return () if self._locals == "none" else ("--locals",)

    def local(self, pid: int, frame: Frame, name: str) -> str | None:
        """The value of one local variable of a frame, if it is a string. No other value is kept."""
        dump = self._begin(pid, "--locals") if self._binary else Stacks()
        if isinstance(dump, Stacks) or dump.wait() is None:
            return None
        try:
            return local_in(dump.output(), frame, name)
        except (ValueError, KeyError, TypeError, SyntaxError):
            return None

    def _begin(self, pid: int, *more: str) -> _Dump | Stacks:
        command = [str(self._binary), "dump", self._mode, *more, "--json", "--pid", str(pid)]
        try:
            dump = _Dump(command, time.monotonic() + self._limit)
        except OSError as error:
            return Stacks(missing=f"py-spy: {error.strerror or error}")
        return dump

    def _end(self, dump: _Dump) -> Stacks:
        status = dump.wait()
        if status is None:
            return Stacks(missing=self._no_answer)
        if status != 0:
            return Stacks(missing=f"py-spy: {reason_in(dump.errors())}")
        try:
            threads = parse_py_spy(dump.output(), self._locals)
        except (ValueError, KeyError, TypeError):
            return Stacks(missing="py-spy: its answer could not be read")
        return Stacks(threads, "py-spy") if threads else Stacks(missing="py-spy: no Python thread found")


class _Dump:
    """One running py-spy, in a group of its own, so that ending it ends whatever it started."""

    def __init__(self, command: list[str], deadline: float) -> None:
        self._deadline = deadline
        self._out, self._err = _scratch(), _scratch()
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._out,
                stderr=self._err,
                start_new_session=True,
                env={**os.environ, "RUST_BACKTRACE": "0"},
            )
        except OSError:
            self._out.close()
            self._err.close()
            raise

    def wait(self) -> int | None:
        """The exit status; None if it had to be ended."""
        try:
            return self._process.wait(max(0.0, self._deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._out.close()
            self._err.close()
            return None

    def output(self) -> str:
        return _content(self._out, self._err)

    def errors(self) -> str:
        return _content(self._err, self._out)


def _scratch() -> IO[bytes]:
    """A file in memory: a full disk must not hide the stacks, and a full pipe must not block py-spy."""
    return os.fdopen(os.memfd_create("py-spy"), "w+b")


def _content(wanted: IO[bytes], other: IO[bytes]) -> str:
    with wanted, other:
        wanted.seek(0)
        return wanted.read().decode(errors="replace")


def own_frames(frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """A process forked by multiprocessing still carries the frames of its parent's `start()`: cut them off."""
    for depth, frame in enumerate(frames, 1):
        if frame.function.endswith("_launch") and frame.file.endswith("multiprocessing/popen_fork.py"):
            return frames[:depth]
    return frames


def find_py_spy() -> str | None:
    """Beside our own interpreter first, since it came with us."""
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
    return tuple(_thread(entry, locals) for entry in json.loads(output) if entry["frames"] is not None)


def local_in(output: str, wanted: Frame, name: str) -> str | None:
    """A string local in the JSON of `py-spy dump --locals --json`."""
    for entry in json.loads(output):
        for frame in entry["frames"]:
            if (frame["filename"], frame["line"]) == (wanted.file, wanted.line):
                for local in frame.get("locals") or ():
                    if local["name"] == name:
                        value = ast.literal_eval(local["repr"])
                        return value if isinstance(value, str) else None
    return None


def _thread(entry: dict[str, Any], locals: Locals) -> PythonThread:
    return PythonThread(
        ident=int(entry["thread_id"]),
        frames=tuple(_python_frames(entry["frames"], locals)),
        tid=entry.get("os_thread_id"),
        name=entry.get("thread_name") or "",
        native=tuple(frame["name"] for frame in entry["frames"] if frame.get("module")),
    )


def _python_frames(frames: list[dict[str, Any]], locals: Locals) -> Iterator[Frame]:
    for frame in frames:
        if frame.get("module"):
            continue
        values = frame.get("locals") or ()
        kept = all_locals(values) if locals == "all" else loader_locals(frame["filename"], frame["name"], values)
        yield Frame(frame["filename"], int(frame["line"] or 0), frame["name"], arguments=kept)
