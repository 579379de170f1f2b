"""Shared by all tests: run unstuck as a person would, and leave nothing behind."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.processes import variable_of, words_of

try:
    # Ignored in the background of a script, or under nohup; here they are tested.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
except ValueError:
    pass  # not in the main thread; then it is as it is

# Test processes run side by side; with as many threads each, they would wait for one another in OpenMP's barriers.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# As installed: the hundreds of interpreters started here use bytecode, though the environment may forbid to write it.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

FAULTS = Path(__file__).parent / "faults"
LIMIT = 120
LAST_RESORTS = ("still-improving", "no-better-than-constant")


def _worth_knowing(finding: dict[str, Any]) -> bool:
    """Advice for a run that ended well: train on, load faster, scale the data. None of it is a fault."""
    return finding["rule"] in LAST_RESORTS or finding["family"] in ("pace", "data")


@dataclass(frozen=True)
class Outcome:
    """How one `unstuck run` ended."""

    code: int
    out: str
    err: str
    report: dict[str, Any]
    seconds: float

    @property
    def loud(self) -> list[dict[str, Any]]:
        return [f for f in self.report.get("findings", []) if f["severity"] in ("error", "warning")]

    @property
    def told(self) -> list[dict[str, Any]]:
        """What must not be said about a healthy run: all findings but information that is only worth knowing."""
        return [f for f in self.report["findings"] if f["severity"] != "info" or not _worth_knowing(f)]

    @property
    def rules(self) -> list[str]:
        return [f["rule"] for f in self.loud]


class Runner:
    """Starts `python -m unstuck run` in a folder of its own; whatever is left at the end is killed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, *words: str | Path, env: dict[str, str] | None = None, **options: Any) -> subprocess.Popen[bytes]:
        """`unstuck WORDS…` in a session of its own, standard input a silent pipe. `launch`: a shell line around it, in
        which PY SCRIPT stands for it."""
        options.setdefault("stdin", subprocess.PIPE)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        options.setdefault("cwd", self.folder)
        line = options.pop("launch", "PY SCRIPT")
        command = [sys.executable, "-m", "unstuck", *map(str, words)]
        process = subprocess.Popen(
            command if line == "PY SCRIPT" else ["sh", "-c", line.replace("PY SCRIPT", shlex.join(command))],
            start_new_session=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "UNSTUCK_TEST_MARK": str(self.folder), **(env or {})},
            **options,
        )
        self.processes.append(process)
        return process

    def run(
        self, script: str | Path, *words: str, flags: tuple[str, ...] = (), limit: float = LIMIT, **options: Any
    ) -> Outcome:
        """`unstuck run FLAGS --report R SCRIPT WORDS…` to its end; at the limit it gets Ctrl-C."""
        report = self.folder / f"report-{len(self.processes)}.json"
        began = time.monotonic()
        process = self.start("run", *flags, "--report", report, script, *words, **options)
        return self.finish(process, report, began, limit)

    def finish(self, process: subprocess.Popen[bytes], report: Path, began: float, limit: float = LIMIT) -> Outcome:
        import threading

        timer = threading.Timer(limit, lambda: os.killpg(process.pid, signal.SIGINT))
        timer.start()
        try:
            # communicate() would close standard input at once; a person's stays open.
            out, err = _drain(process)
        finally:
            timer.cancel()
        told = json.loads(report.read_text()) if report.exists() else {}
        return Outcome(process.returncode, out, err, told, time.monotonic() - began)

    def close(self) -> None:
        for process in self.processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    try:
                        stream.close()
                    except OSError:
                        pass
            process.wait()


def _drain(process: subprocess.Popen[bytes]) -> tuple[str, str]:
    import threading

    taken: dict[str, bytes] = {"out": b"", "err": b""}

    def take(name: str, stream: Any) -> None:
        taken[name] = stream.read() if stream is not None else b""

    readers = [
        threading.Thread(target=take, args=pair, daemon=True)
        for pair in (("out", process.stdout), ("err", process.stderr))
    ]
    for reader in readers:
        reader.start()
    process.wait()
    for reader in readers:
        reader.join(20)
    return taken["out"].decode(errors="replace"), taken["err"].decode(errors="replace")


def can_mount() -> bool:
    """A file system of one's own needs a root that may make mount namespaces."""
    return os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0


@pytest.fixture
def unstuck(tmp_path: Path) -> Iterator[Runner]:
    """Run unstuck in an empty folder; afterwards no process and no flight folder of it may be left."""
    temporary = Path(tempfile.mkdtemp(prefix="u-"))  # short: sockets are made in it, whose paths may have 107 letters
    folder = tmp_path / "work"
    folder.mkdir()
    before = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = str(temporary)
    runner = Runner(folder)
    try:
        yield runner
    finally:
        runner.close()
        if before is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = before
    left = _left_behind(str(folder))
    for process in left:
        process.kill()
    assert not left, f"left running: {[words_of(p) for p in left]}"
    flights = list(temporary.glob("unstuck-*"))
    shutil.rmtree(temporary)
    assert not flights, "a flight folder was left behind"


def _left_behind(mark: str, patience: float = 6.0) -> list[psutil.Process]:
    """Processes that carry this test's mark in their environment; they get a moment to end."""
    deadline = time.monotonic() + patience
    while True:
        left = [p for p in psutil.process_iter() if variable_of(p, "UNSTUCK_TEST_MARK") == mark]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.1)
