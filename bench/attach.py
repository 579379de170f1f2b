"""What `unstuck attach` takes beside py-spy on a hung tree, and what a running training loses while it is looked at."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.processes import unstuck
from bench.stats import Interval, interval

HUNG = """
import fcntl, torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __len__(self):
        return 4096
    def __getitem__(self, i):
        if i == 200:
            with open("index.lock") as handle:
                fcntl.flock(handle, fcntl.LOCK_EX)
        return torch.randn(16)

if __name__ == "__main__":
    with open("index.lock", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        for x in DataLoader(Rows(), batch_size=8, num_workers=8):
            pass
"""
RUNNING = """
import sys, time, torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __len__(self):
        return 1 << 30
    def __getitem__(self, i):
        return torch.randn(64), i % 10

if __name__ == "__main__":
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    opt = torch.optim.Adam(model.parameters())
    times = open("steps", "w", buffering=1)
    last = time.monotonic()
    for x, y in DataLoader(Rows(), batch_size=64, num_workers={workers}):
        opt.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        opt.step()
        time.sleep(0.005)
        now = time.monotonic()
        times.write(f"{{now}} {{now - last}}\\n")
        last = now
"""
WINDOW = 4.0
"""Seconds of a window with or without a look: as long as an attach to a moving run takes."""


@contextmanager
def training(source: str, settle: float) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "train.py")
        script.write_text(source)
        process = subprocess.Popen(
            [sys.executable, str(script)],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            time.sleep(settle)
            if process.poll() is not None:
                raise RuntimeError(f"the training ended with {process.returncode}")
            yield process, Path(folder)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def cause(rounds: int) -> tuple[Interval, Interval, Interval]:
    """Seconds of `unstuck attach` from the command to the printed cause, of its looks alone, and of nine dumps."""
    whole, looks, dumps = [], [], []
    with training(HUNG, settle=25.0) as (process, _):
        pids = [process.pid, *_children(process.pid)]
        if len(pids) != 9:
            raise RuntimeError(f"1 + 8 processes were wanted, not {len(pids)}")
        for _ in range(rounds):
            dumps.append(_seconds([[py_spy(), "dump", "--nonblocking", "--pid", str(pid)] for pid in pids], 0))
            whole.append(_seconds([[unstuck(), "attach", str(process.pid)]], 1))
            looks.append(_looks(process.pid))
    return interval(whole), interval(looks), interval(dumps)


def _looks(pid: int) -> float:
    """The two looks of a proof, by an interpreter that has loaded everything."""
    done = subprocess.run(
        [sys.executable, "-c", _TIMED, str(pid)], capture_output=True, text=True, check=True, timeout=60
    )
    return float(done.stdout)


_TIMED = """
import sys, time
from unstuck.attach.inspection import Inspection
from unstuck.attach.target import resolve
inspection = Inspection(resolve(int(sys.argv[1])))
began = time.monotonic()
inspection.look()
inspection.look()
print(time.monotonic() - began)
"""


def delay(rounds: int, workers: int = 8) -> tuple[Interval, Interval, float, float]:
    """Seconds by which the slowest step, and the median one, is longer in windows with a look than in those without;
    the slowest step of a window without, and the median one, for comparison."""
    slowest, typical = [], []
    plain_worst, plain_typical = [], []
    with training(RUNNING.format(workers=workers), settle=10.0) as (process, folder):
        for _ in range(rounds):
            looked = _window(folder, [unstuck(), "attach", "--seconds", "3", str(process.pid)])
            plain = _window(folder, ["sleep", str(WINDOW)])
            slowest.append(max(looked) - max(plain))
            typical.append(statistics.median(looked) - statistics.median(plain))
            plain_worst.append(max(plain))
            plain_typical.append(statistics.median(plain))
    return interval(slowest), interval(typical), statistics.median(plain_worst), statistics.median(plain_typical)


def _window(folder: Path, command: list[str]) -> list[float]:
    """Step times while the command runs."""
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr.decode())
    time.sleep(max(0.0, began + WINDOW - time.monotonic()))
    ended = time.monotonic()
    lines = (folder / "steps").read_text().splitlines()[:-1]
    steps = [(float(at), float(took)) for at, took in (line.split() for line in lines)]
    return [took for at, took in steps if began <= at <= ended]


def _seconds(commands: list[list[str]], status: int) -> float:
    began = time.monotonic()
    for command in commands:
        done = subprocess.run(command, capture_output=True, check=False, timeout=60)
        if done.returncode != status:
            raise RuntimeError(f"{command}: {done.returncode}\n{done.stdout.decode()}{done.stderr.decode()}")
    return time.monotonic() - began


def py_spy() -> str:
    return os.path.join(os.path.dirname(sys.executable), "py-spy")


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
