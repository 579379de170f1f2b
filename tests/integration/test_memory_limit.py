"""Real memory cgroups: a kill for want of memory is named as such, and told from a plain SIGKILL."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import memory_group
from tests.conftest import FAULTS, Runner
from tests.memory_group import MemoryGroup
from unstuck import text

FACTS: dict[str, dict[str, Any]] = json.loads((FAULTS / "expected.json").read_text())
LIMIT: int = FACTS["oom-kept-predictions"]["memory"]


@pytest.fixture
def limited() -> Iterator[MemoryGroup]:
    group = memory_group.make(LIMIT)
    if group is None:
        pytest.skip("no memory cgroup can be made here")
    yield group
    group.remove()


def test_a_worker_that_is_oom_killed(unstuck: Runner, limited: MemoryGroup) -> None:
    outcome = unstuck.run(FAULTS / "faulty" / "oom-decoded-cache.py", preexec_fn=limited.enter)
    assert limited.kills >= 1
    assert outcome.rules == ["out-of-memory-kill"], outcome.err[-3000:]
    first = outcome.loud[0]
    assert first["where"]["worker"] == 0
    assert first["title"].startswith("Worker 0")
    assert text.size(LIMIT) in first["title"]
    assert any("rose from 0 to" in line for line in first["evidence"])
    assert any("its memory rose from" in line for line in first["evidence"])
    assert outcome.code == 1


def test_main_that_is_oom_killed(unstuck: Runner, limited: MemoryGroup) -> None:
    outcome = unstuck.run(FAULTS / "faulty" / "oom-kept-predictions.py", preexec_fn=limited.enter)
    assert limited.kills >= 1
    assert outcome.rules == ["out-of-memory-kill"], outcome.err[-3000:]
    first = outcome.loud[0]
    assert first["where"]["line"] == FACTS["oom-kept-predictions"]["line"][0]
    assert any("penalties in main" in line for line in first["evidence"])
    assert outcome.report["run"]["signal"] == signal.SIGKILL
    assert outcome.code == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("name", ["oom-decoded-cache", "oom-kept-predictions"])
def test_the_healthy_twin_has_room(unstuck: Runner, limited: MemoryGroup, name: str) -> None:
    outcome = unstuck.run(FAULTS / "healthy" / f"{name}.py", preexec_fn=limited.enter)
    assert outcome.code == 0, outcome.err[-3000:]
    assert limited.kills == 0
    assert outcome.told == []


@pytest.mark.slow
def test_a_plain_sigkill_is_not_called_so(unstuck: Runner, limited: MemoryGroup) -> None:
    script = unstuck.folder / "killed.py"
    script.write_text(
        "import os, signal, torch\n"
        "model = torch.nn.Linear(4, 1)\n"
        "opt = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for step in range(50):\n"
        "    model(torch.ones(2, 4)).sum().backward()\n"
        "    opt.step()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    outcome = unstuck.run(script, preexec_fn=limited.enter)
    assert outcome.code == -signal.SIGKILL
    assert "out-of-memory-kill" not in outcome.rules


@pytest.mark.slow
def test_a_child_that_moves_into_a_cgroup_of_its_own(unstuck: Runner, limited: MemoryGroup) -> None:
    """The supervisor stays outside: its own cgroup knows nothing of the kill."""
    script = unstuck.folder / "moves.py"
    script.write_text(
        f"import os\n"
        f"with open({str(limited.folder / 'cgroup.procs')!r}, 'w') as procs:\n"
        f"    procs.write(str(os.getpid()))\n" + (FAULTS / "faulty" / "oom-kept-predictions.py").read_text()
    )
    outcome = unstuck.run(script)
    assert outcome.rules == ["out-of-memory-kill"], outcome.err[-3000:]


def test_it_is_named_from_bare_flight_files(limited: MemoryGroup) -> None:
    """The supervisor is killed with the training: what lies in the flight folder still proves the kill."""
    temporary = Path(tempfile.mkdtemp(prefix="u-"))
    process = subprocess.Popen(
        [sys.executable, "-m", "unstuck", "run", str(FAULTS / "faulty" / "oom-kept-predictions.py")],
        preexec_fn=limited.enter,
        start_new_session=True,
        cwd=temporary,
        env={**os.environ, "TMPDIR": str(temporary), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        folder = wait_for_growth(temporary)
        os.kill(process.pid, signal.SIGSTOP)  # it sees nothing of what comes, as one that is killed first
        deadline = time.monotonic() + 60
        while limited.kills == 0 and time.monotonic() < deadline:
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        shown = subprocess.run(
            [sys.executable, "-m", "unstuck", "report", str(folder)], capture_output=True, text=True, cwd=temporary
        )
        assert "out-of-memory-kill" in shown.stdout + shown.stderr, shown.stdout + shown.stderr
        assert text.size(LIMIT) in shown.stdout + shown.stderr
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        shutil.rmtree(temporary)


def wait_for_growth(temporary: Path) -> Path:
    """The flight folder, once the training has made some steps as seen in the memory file."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for file in temporary.glob("unstuck-*/memory.log"):
            steps = [line.split()[-1] for line in file.read_text().splitlines() if line.startswith("rss ")]
            if steps and int(steps[-1]) > 20:
                return file.parent
        time.sleep(0.1)
    raise AssertionError("it never trained")
