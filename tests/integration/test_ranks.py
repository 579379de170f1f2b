"""Real runs of several ranks: a fault on one of them is the cause, with its rank; the others are its roll-call."""

from __future__ import annotations

import socket
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import Outcome, Runner

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
}
HEALTHY = ("validates-long", "join", "no-sync", "find-unused", "fsdp", "two-groups", "late-rank", "uneven-speed")


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def torchrun(unstuck: Runner, script: str, *words: str, ranks: int = 2, flags: tuple[str, ...] = ()) -> Outcome:
    report, began = unstuck.folder / "report.json", time.monotonic()
    launch = ("-m", "torch.distributed.run", "--nproc-per-node", str(ranks), "--master-port", str(free_port()))
    process = unstuck.start("run", *flags, "--report", report, "--", sys.executable, *launch, SCRIPTS / script, *words)
    return unstuck.finish(process, report, began, LIMIT)


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow), pytest.param(8, marks=pytest.mark.slow)])
@pytest.mark.parametrize("fault", ["raise", *(pytest.param(f, marks=pytest.mark.slow) for f in FAULTS if f != "raise")])
def test_a_fault_on_one_rank_is_the_cause(unstuck: Runner, fault: str, ranks: int) -> None:
    flags = ("--on-hang", "stop", "--stall-after", "20")
    outcome = torchrun(unstuck, "rank_faults.py", fault, ranks=ranks, flags=flags)
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
    outcome = torchrun(unstuck, "rank_pauses.py", kind, ranks=2, flags=("--on-hang", "stop"))
    assert (outcome.code, outcome.loud) == (0, []), outcome.err[-3000:]
    assert outcome.report["run"]["outcome"] == "finished"
