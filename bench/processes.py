"""Costs of whole processes: start-up, `--help`, and the supervisor beside a healthy training."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.stats import Interval, interval

TRAINING = """
import time, torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

def main():
    torch.set_num_threads(1)
    data = TensorDataset(torch.randn(4096, 16), torch.randn(4096, 1))
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    opt = torch.optim.SGD(model.parameters(), lr=1e-3)
    end = time.monotonic() + {seconds}
    loader = DataLoader(data, batch_size=32, num_workers=2, persistent_workers=True)
    while time.monotonic() < end:
        for x, y in loader:
            opt.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            opt.step()
            time.sleep(0.002)

if __name__ == "__main__":
    main()
"""


def child_cpu(command: list[str], folder: str) -> float:
    """Processor seconds of a command and all it waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}  # as installed
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder, check=True, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def start_up(pairs: int) -> Interval:
    """`unstuck run empty.py` less `python empty.py`: supervisor, recorder and the end of the run, all of it."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "empty.py")
        script.write_text("pass\n")
        plain = [sys.executable, str(script)]
        watched = [unstuck(), "run", "--python", sys.executable, str(script)]
        for command in (plain, watched):
            child_cpu(command, folder)
        return interval([child_cpu(watched, folder) - child_cpu(plain, folder) for _ in range(pairs)])


def help_page(pairs: int) -> Interval:
    with tempfile.TemporaryDirectory() as folder:
        return interval([child_cpu([unstuck(), "--help"], folder) for _ in range(pairs)])


def supervisor(seconds: float) -> tuple[float, float]:
    """Peak memory in MB, and the share of a core, of the supervisor beside a healthy training."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "train.py")
        script.write_text(TRAINING.format(seconds=seconds + 8))
        process = subprocess.Popen(
            [unstuck(), "run", "--python", sys.executable, str(script)],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(6)
        began, cpu = time.monotonic(), _cpu(process.pid)
        time.sleep(seconds)
        share = (_cpu(process.pid) - cpu) / (time.monotonic() - began)
        peak = _peak(process.pid)
        process.wait()
        if process.returncode:
            raise RuntimeError(f"the watched training ended with {process.returncode}")
        return peak, share


def unstuck() -> str:
    return os.path.join(os.path.dirname(sys.executable), "unstuck")


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _peak(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("the kernel does not say how much memory was used")
