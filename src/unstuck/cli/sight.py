"""Can unstuck see into the processes it starts? Tried out on a child, not guessed from settings."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from unstuck.cli.machine import Row

YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
_SCOPES = {
    "0": "any process of yours may be looked into",
    "1": "only what unstuck itself starts may be looked into: use `unstuck run`",
    "2": "only an administrator may look into a process",
    "3": "nobody may look into a process until the next boot",
}
LIMIT = 10.0


def rows() -> Iterator[Row]:
    yield _yama()
    child = subprocess.Popen(
        [sys.executable, "-c", "import sys, time; print(flush=True); time.sleep(60)"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    try:
        assert child.stdout is not None
        child.stdout.readline()
        yield _waits(child.pid)
        yield _stacks(child.pid)
    finally:
        child.kill()
        child.wait()
        if child.stdout is not None:
            child.stdout.close()


def _yama() -> Row:
    try:
        scope = YAMA.read_text().strip()
    except OSError:
        return Row("ptrace", "no Yama", "no rule against looking into your own processes")
    return Row("ptrace", f"Yama {scope}", _SCOPES.get(scope, ""), {"0": True, "1": True}.get(scope, False))


def _waits(pid: int) -> Row:
    try:
        Path(f"/proc/{pid}/syscall").read_text()
    except OSError as error:
        return Row(
            "system calls", error.strerror or str(error), "what a hung process waits for: told less exactly", None
        )
    return Row("system calls", "readable", "what a hung process waits for: yes")


def _stacks(pid: int) -> Row:
    name, no = "py-spy", "stacks of hung processes: no, only those that a process writes itself on a signal"
    program = find_py_spy()
    if program is None:
        return Row(name, "not found", f"{no}; {os.path.basename(sys.executable)} -m pip install py-spy", False)
    command = [program, "dump", "--nonblocking", "--json", "--pid", str(pid)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return Row(name, f"no answer in {LIMIT:g} s", no, False)
    except OSError as error:
        return Row(name, error.strerror or str(error), no, False)
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or [f"status {done.returncode}"]
        return Row(name, last[0], f"{no}; in a container: --cap-add=SYS_PTRACE", False)
    return Row(name, "works on a child", "stacks of hung processes: yes")


def find_py_spy() -> str | None:
    """Beside our own interpreter first: an environment need not be active to be used."""
    beside = os.path.join(os.path.dirname(sys.executable), "py-spy")
    return beside if os.access(beside, os.X_OK) else shutil.which("py-spy")
