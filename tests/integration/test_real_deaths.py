"""Real deaths, each by its own cause: named, and never taken for another."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.conftest import Outcome, Runner, can_mount
from tests.processes import running_below, words_of

SCRIPT = Path(__file__).parent / "scripts" / "dies.py"
FULL = "unshare -m sh -c 'mkdir -p full && mount -t tmpfs -o size=1m tmpfs full && exec PY SCRIPT'"
SMALL_SHM = "unshare -m sh -c 'mount -t tmpfs -o size=3m tmpfs /dev/shm && exec PY SCRIPT'"
STOP = ("--on-hang", "stop")
CROWDED = "ulimit -n 256; exec PY SCRIPT"
MAIN = "0"


@dataclass(frozen=True)
class Way:
    rule: str
    words: tuple[str, ...]
    """After the script: the kind, and the number of workers."""
    says: str
    """Something that the finding must have found out."""
    sample: int | None = None
    launch: str = "PY SCRIPT"
    quick: bool = False
    may_stand: bool = False
    """A worker without descriptors may die of it, or be unable to hand over its batch: then main waits."""


WAYS = {
    "segv": Way("native-crash", ("segv",), "SIGSEGV", 21),
    "segv-in-main": Way("native-crash", ("segv", MAIN), "SIGSEGV"),
    "abort": Way("native-crash", ("abort",), "SIGABRT", 21),
    "abort-in-main": Way("native-crash", ("abort", MAIN), "SIGABRT"),
    "bus-of-a-file": Way("native-crash", ("bus",), "SIGBUS", 21),
    "fpe": Way("native-crash", ("fpe",), "SIGFPE", 21),
    "exit-0": Way("uncaught-exception", ("exit-0",), "exit code 0", 21, quick=True),
    "exit-1": Way("uncaught-exception", ("exit-1",), "exit code 1", 21),
    "sys-exit": Way("uncaught-exception", ("sys-exit",), "exit code 3", 21),
    "kill": Way("ended-from-outside", ("kill",), "SIGKILL", 21),
    "raise": Way("sample-raises", ("raise",), "KeyError", 21),
    "raise-in-main": Way("sample-raises", ("raise", MAIN), "KeyError", 21),
    "descriptors": Way("too-many-open-files", ("descriptors", "1"), "of 256", launch=CROWDED, may_stand=True),
    "descriptors-in-main": Way("too-many-open-files", ("descriptors", MAIN), "of 256", launch=CROWDED),
    "shared-memory": Way("shared-memory-full", ("big-samples",), "/dev/shm", launch=SMALL_SHM),
    "bus-of-shared-memory": Way("shared-memory-full", ("shm-bus",), "SIGBUS", 21, launch=SMALL_SHM),
    "checkpoint": Way("disk-full", ("checkpoint", MAIN), "last.pt", launch=FULL),
    "log": Way("disk-full", ("log", MAIN), "full", launch=FULL),
}


def ways(*, twenty: bool = False) -> list[object]:
    return [
        pytest.param(
            name,
            marks=[
                *([pytest.mark.slow] if twenty or not way.quick else []),
                *([pytest.mark.skipif(not can_mount(), reason="needs mounts")] if "unshare" in way.launch else []),
            ],
        )
        for name, way in WAYS.items()
    ]


def check(outcome: Outcome, way: Way) -> None:
    assert outcome.rules == [way.rule], outcome.err[-3000:]
    first = outcome.loud[0]
    text = " ".join([first["title"], *first["evidence"]])
    assert way.says in text, text
    assert first["where"]["sample"] == way.sample or way.sample is None, first["where"]
    assert outcome.report["run"]["outcome"] in (("died", "stopped") if way.may_stand else ("died",))
    assert outcome.report["probes_off"] == []
    assert outcome.code != 0


@pytest.mark.parametrize("name", ways())
def test_each_death_has_its_name(unstuck: Runner, name: str) -> None:
    check(unstuck.run(SCRIPT, *WAYS[name].words, flags=STOP, launch=WAYS[name].launch), WAYS[name])


@pytest.mark.parametrize("name", ways(twenty=True))
def test_each_death_has_its_name_twenty_times(unstuck: Runner, name: str) -> None:
    for _ in range(20):
        check(unstuck.run(SCRIPT, *WAYS[name].words, flags=STOP, launch=WAYS[name].launch), WAYS[name])


# --- ended by others -----------------------------------------------------------------------------------------


def training(unstuck: Runner, kind: str, workers: str = "2", **options: object) -> tuple[subprocess.Popen[bytes], Path]:
    """Start it and wait until it trains."""
    report = unstuck.folder / "report.json"
    process = unstuck.start("run", "--report", report, SCRIPT, kind, workers, **options)  # type: ignore[arg-type]
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"trains")
    return process, report


def script_of(process: subprocess.Popen[bytes]) -> psutil.Process:
    return next(p for p in running_below(process.pid) if str(SCRIPT) in words_of(p) and "unstuck" not in words_of(p))


@pytest.mark.parametrize("name", ["SIGKILL", pytest.param("SIGTERM", marks=pytest.mark.slow)])
def test_main_killed_from_outside(unstuck: Runner, name: str) -> None:
    process, report = training(unstuck, "long-training")
    script_of(process).send_signal(signal.Signals[name])
    outcome = unstuck.finish(process, report, time.monotonic())
    check(outcome, Way("ended-from-outside", (), name))
    assert outcome.code == -signal.Signals[name]


@pytest.mark.parametrize("name", [pytest.param("SIGKILL", marks=pytest.mark.slow)])
def test_worker_killed_from_outside_while_main_is_elsewhere(unstuck: Runner, name: str) -> None:
    """torch raises in the middle of main's own sleep: there the loader's own code is not on the stack."""
    process, report = training(unstuck, "wait")
    worker = running_below(script_of(process).pid)[0]
    worker.send_signal(signal.Signals[name])
    check(unstuck.finish(process, report, time.monotonic()), Way("ended-from-outside", (), name))


def test_sigterm_by_a_parent_is_named_with_its_sender(unstuck: Runner) -> None:
    process, report = training(unstuck, "long-training", MAIN, launch="PY SCRIPT & wait")
    inside = next(p for p in running_below(process.pid) if "unstuck" in words_of(p))
    inside.send_signal(signal.SIGTERM)
    outcome = unstuck.finish(process, report, time.monotonic())
    assert outcome.rules == ["ended-from-outside"], outcome.err[-2000:]
    assert f"(pid {os.getpid()})" in outcome.loud[0]["title"]
    assert "which started this run" in outcome.loud[0]["title"]
    assert outcome.report["run"]["outcome"] == "interrupted"


# --- what is none of ours ------------------------------------------------------------------------------------

HEALTHY = {
    "a bad sample is caught, and children exit with a code": """
        it = iter(DataLoader(Rows(), batch_size=1, num_workers=1))
        while True:
            try:
                next(it)
            except ValueError:
                continue
            except StopIteration:
                break
        import multiprocessing, subprocess, sys
        child = multiprocessing.Process(target=sys.exit, args=(3,))
        child.start(); child.join()
        assert child.exitcode == 3
        subprocess.run([sys.executable, "-c", "1 / 0"], stderr=subprocess.DEVNULL)
        if os.fork() == 0:
            os._exit(7)
        os.wait()
    """,
    "SIGTERM is handled": """
        import signal, sys, time
        signal.signal(signal.SIGTERM, lambda *_: print("saved") or sys.exit(0))
        net = torch.nn.Linear(2, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(600):
            net(torch.ones(1, 2)).sum().backward()
            opt.step()
            time.sleep(0.05)
            if step == 10:
                os.kill(os.getppid(), signal.SIGTERM)
    """,
    "an exit code on purpose": """
        import sys
        sys.exit(5)
    """,
    "an error in a thread": """
        import threading
        thread = threading.Thread(target=lambda: 1 / 0); thread.start(); thread.join()
    """,
}

PROLOGUE = """
import os, torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, i):
        if i == 3:
            raise ValueError("bad sample")
        return torch.ones(2)
"""


@pytest.mark.parametrize(
    "name", [n if n.startswith("a bad") else pytest.param(n, marks=pytest.mark.slow) for n in HEALTHY]
)
def test_a_run_that_meant_it_is_left_alone(unstuck: Runner, name: str) -> None:
    import textwrap

    script = unstuck.folder / "train.py"
    script.write_text(PROLOGUE + textwrap.dedent(HEALTHY[name]))
    outcome = unstuck.run(script)
    assert outcome.rules == [], outcome.err[-3000:]
    assert outcome.report["probes_off"] == []
    assert outcome.code == (5 if "on purpose" in name else 0), outcome.err[-2000:]


def test_ctrl_c_is_no_death(unstuck: Runner) -> None:
    process, report = training(unstuck, "long-training")
    os.killpg(process.pid, signal.SIGINT)
    outcome = unstuck.finish(process, report, time.monotonic())
    assert outcome.rules == []
    assert outcome.code == -signal.SIGINT
