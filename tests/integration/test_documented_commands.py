"""Every command that README and docs show is run, in a folder with a small training, and ends as the pages say."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documented import Command, commands

TRAIN = """
import sys
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(640, 4)
targets = (inputs @ torch.tensor([1.0, -2.0, 0.5, 3.0])).unsqueeze(1)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(10):
    for batch, target in DataLoader(TensorDataset(inputs, targets), batch_size=32, shuffle=True):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(batch), target)
        loss.backward()
        optimizer.step()
print("trained", *sys.argv[1:])
"""
SLEEPS = "import time, torch\ntime.sleep(600)\n"

NOT_RUN = {  # beginning of a command: why it cannot be run here
    "pip install": "would change the environment of the tests",
    "pipx install": "needs pipx, and would change the home of the person",
    "make ": "sets up an environment, or runs these very tests; test_docs.py looks for the targets",
    "kubectl": "needs a cluster",
    "srun": "needs SLURM",
    "unstuck report node1 ": "needs the folders of two machines; test_ranks.py reads such ones",
    "unstuck report node0/": "needs the folders of two machines; test_ranks.py reads such ones",
    "unstuck attach 4711 --watch": "watches until the run ends; test_attach_corpus.py does",
}
LONG = ("unstuck tune", "unstuck demo", "unstuck run -- torchrun", "unstuck attach")
"""Run behind the marker `slow`: some ten seconds and more."""
DONE, FOUND = (0,), (0, 1)
ONCE = ("unstuck run train.py", "unstuck run --stop-on error --fail-on warning --report why.json train.py")
"""Of the runs of the same healthy script, those that are made by default."""


def _cases() -> Iterator[object]:
    for command in commands():
        if not command.by_hand or any(command.text.startswith(start) for start in NOT_RUN):
            continue
        long = command.text.startswith(LONG) and command.text != "unstuck demo --list"
        again = command.text.startswith("unstuck run") and command.text not in ONCE
        marks = [pytest.mark.slow] if long or again else []
        yield pytest.param(command, marks=marks, id=command.text)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small training, a package, a log; and a run that was watched."""
    folder = tmp_path_factory.mktemp("documented")
    (folder / "train.py").write_text(TRAIN)
    (folder / "package").mkdir()
    (folder / "package" / "train.py").write_text(TRAIN)
    (folder / "train.log").write_text("RuntimeError: DataLoader worker (pid 77) is killed by signal: Bus error.\n")
    assert _run("unstuck run train.py", folder).returncode == 0
    return folder


def _run(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PATH": f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    for name in ("VIRTUAL_ENV", "DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):  # nothing is opened on a person's screen
        env.pop(name, None)
    program = folder / "unstuck"
    if not program.exists():
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m unstuck "$@"\n')
        program.chmod(0o755)
    process = subprocess.Popen(
        line, shell=True, cwd=folder, env={**env, "UNSTUCK_TEST_MARK": str(folder)}, text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        out, said = process.communicate(timeout=180)
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return subprocess.CompletedProcess(line, process.returncode, out, said)


@pytest.mark.parametrize("command", list(_cases()))
def test_it_works_as_the_page_says(command: Command, folder: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    shutil.copytree(folder, here, symlinks=True)
    line, sleeper = command.text, None
    if line.startswith("unstuck attach"):
        (here / "sleeps.py").write_text(SLEEPS)
        sleeper = subprocess.Popen([sys.executable, "sleeps.py"], cwd=here)
        time.sleep(3)
        line = line.replace("4711", str(sleeper.pid))
    try:
        done = _run(line, here)
    finally:
        if sleeper is not None:
            sleeper.kill()
            sleeper.wait()
    assert done.returncode in (FOUND if line.startswith(("unstuck attach", "unstuck scan")) else DONE), done.stderr
    assert "Traceback" not in done.stderr.replace("KeyboardInterrupt", "") or line.startswith("unstuck demo")
    if line.startswith("unstuck run") and "torchrun" not in line:
        assert done.stdout.startswith("trained")
    if not line.startswith(("unstuck run", "unstuck completion", "unstuck report --json", "unstuck explain")):
        last = [text.rstrip().splitlines()[-1] for text in (done.stdout, done.stderr) if text.strip()]
        assert any(re.match(r"\s*next: \S+", line) for line in last), last


def test_what_is_not_run_is_there() -> None:
    shown = [command.text for command in commands() if command.by_hand]
    for start in NOT_RUN:
        assert any(text.startswith(start) for text in shown), f"no page has {start}"
