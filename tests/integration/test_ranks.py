"""Real runs of several ranks: a fault on one of them is the cause, with its rank; the others are its roll-call."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests import memory_group
from tests.conftest import Outcome, Runner
from tests.processes import running_below, variable_of
from unstuck.observer.flights import read_folder

SCRIPTS = Path(__file__).parent / "scripts"
LIMIT = 420.0  # seconds: each rank imports torch
FAULTS = {  # planted on one rank: rules that name it
    "raise": ("sample-raises",),
    "spin": ("sample-spins",),
    "lock": ("lock-lost-in-fork", "lock-never-released"),
    "nan": ("nonfinite-input",),
    "kill": ("ended-from-outside",),
    "exit": ("rank-exited-early",),
    "loop": ("main-spins", "rank-skips-collective"),
    "memory": ("out-of-memory-kill",),
}
HEALTHY = (
    *("validates-long", "saves-long", "join", "no-sync", "find-unused", "fsdp", "two-groups", "late-rank"),
    *("uneven-speed", "restarts"),
)
MEMORY_A_RANK = 600 << 20  # bytes: torch and a small model fit, what keeps growing does not


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def torchrun(ranks: int, *words: str | Path) -> tuple[str | Path, ...]:
    launch = ("--nproc-per-node", str(ranks), "--master-port", str(free_port()))
    return sys.executable, "-m", "torch.distributed.run", *launch, *words


def run(unstuck: Runner, *command: str | Path, flags: tuple[str, ...] = (), **options: Any) -> Outcome:
    report, began = unstuck.folder / "report.json", time.monotonic()
    process = unstuck.start("run", *flags, "--report", report, "--", *command, **options)
    return unstuck.finish(process, report, began, LIMIT)


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow), pytest.param(8, marks=pytest.mark.slow)])
@pytest.mark.parametrize("fault", ["raise", *(pytest.param(f, marks=pytest.mark.slow) for f in FAULTS if f != "raise")])
def test_a_fault_on_one_rank_is_the_cause(unstuck: Runner, fault: str, ranks: int) -> None:
    flags, command = ("--on-hang", "stop", "--stall-after", "20"), torchrun(ranks, SCRIPTS / "rank_faults.py", fault)
    group = memory_group.make(ranks * MEMORY_A_RANK) if fault == "memory" else None
    if fault == "memory" and group is None:
        pytest.skip("no memory cgroup can be made here")
    try:
        outcome = run(unstuck, *command, flags=flags, **({"preexec_fn": group.enter} if group else {}))
    finally:
        if group is not None:
            group.remove()
    errors = [finding for finding in outcome.loud if finding["severity"] == "error"]
    assert errors, outcome.err[-3000:]
    first = errors[0]
    assert first["rule"] in FAULTS[fault], outcome.err[-3000:]
    assert first["where"]["rank"] == 1
    assert [finding["rule"] for finding in errors[1:]] == []
    if fault != "nan":
        assert any("rank 0" in line or "ranks 0" in line for line in first["evidence"]), first["evidence"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", HEALTHY)
def test_silent_on_healthy_ranks(unstuck: Runner, kind: str) -> None:
    restarts = ("--max-restarts", "1") if kind == "restarts" else ()
    command = torchrun(2, *restarts, SCRIPTS / "rank_pauses.py", kind)
    outcome = run(unstuck, *command, flags=("--on-hang", "stop"))
    assert (outcome.code, outcome.loud) == (0, []), outcome.err[-3000:]
    assert outcome.report["run"]["outcome"] == "finished"


@pytest.mark.slow
def test_one_supervisor_for_each_rank(unstuck: Runner) -> None:
    """As a scheduler starts them: each sees its own rank only; their folders together give the answer."""
    port, folders, flags = str(free_port()), [unstuck.folder / name for name in ("a", "b")], ("--stall-after", "10")
    command = ("run", "--on-hang", "stop", *flags, SCRIPTS / "rank_faults.py", "skip")
    started = []
    for rank, folder in enumerate(folders):
        folder.mkdir()
        env = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        started.append(unstuck.start(*command, env=env, cwd=folder))
    for process in started:
        unstuck.finish(process, unstuck.folder / "none", time.monotonic(), LIMIT)
    report = unstuck.folder / "report.json"
    unstuck.finish(unstuck.start("report", *folders, "--report", report), report, time.monotonic(), LIMIT)
    first = json.loads(report.read_text())["findings"][0]
    assert (first["rule"], first["where"]["rank"]) == ("rank-skips-collective", 1)
    assert any(line.startswith("rank 0 waits in the gradient all_reduce") for line in first["evidence"])


@pytest.mark.slow
def test_a_rank_that_is_killed_in_a_collective(unstuck: Runner) -> None:
    report, began = unstuck.folder / "report.json", time.monotonic()
    process = unstuck.start("run", "--report", report, "--", *torchrun(2, SCRIPTS / "rank_faults.py", "loop"))
    os.kill(_ranks_of(process.pid, at_step=20)[0], signal.SIGKILL)
    outcome = unstuck.finish(process, report, began, LIMIT)
    assert outcome.loud, outcome.err[-3000:]
    assert (outcome.loud[0]["rule"], outcome.loud[0]["where"]["rank"]) == ("ended-from-outside", 0)


def _ranks_of(supervisor: int, at_step: int) -> dict[int, int]:
    """Pids by rank, once each has made so many steps."""
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        found = {}
        for child in running_below(supervisor):
            folder = variable_of(child, "UNSTUCK_FLIGHT_DIR")
            for flight in read_folder(folder)[0] if folder else ():
                if flight.pid == child.pid and flight.rank is not None and flight.step >= at_step:
                    found[flight.rank] = flight.pid
        if len(found) == 2:
            return found
        time.sleep(0.5)
    raise AssertionError("the ranks never got there")
