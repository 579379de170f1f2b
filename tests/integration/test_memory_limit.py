"""Real memory cgroups: an OOM kill is told from a plain SIGKILL, and named by what is left of a run."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import memory_group
from tests.conftest import FAULTS, Runner
from tests.corpus import FAULTY
from tests.memory_group import MemoryGroup
from unstuck import text

LIMIT = FAULTY["oom-kept-predictions"].memory or 0


@pytest.fixture
def limited() -> Iterator[MemoryGroup]:
    group = memory_group.make(LIMIT)
    if group is None:
        pytest.skip("no memory cgroup can be made here")
    yield group
    group.remove()


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
