"""Signals pass through once, stopped time does not count, and the end of a run is what the command line promises."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import Outcome, Runner
from tests.processes import running_below

SCRIPTS = Path(__file__).parent / "scripts"
LIMIT = 60.0
A_SECOND_ONE = 1.0
"""Seconds in which a signal passed on twice would have come twice."""


class Started:
    """A run in progress, its standard output read line by line."""

    def __init__(self, unstuck: Runner, script: str, *words: str, flags: tuple[str, ...] = ()) -> None:
        self.unstuck, self.report = unstuck, unstuck.folder / "report.json"
        always = ("--python", sys.executable, "--report", str(self.report))
        self.process = unstuck.start("run", *always, *flags, SCRIPTS / script, *words, bufsize=0)
        self.read = b""

    def until(self, word: str) -> str:
        """The next line that begins with the word."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + LIMIT
        while True:
            line, newline, rest = self.read.partition(b"\n")
            if newline:
                self.read = rest
                if line.startswith(word.encode()):
                    return line.decode()
                continue
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            more = self.process.stdout.read(4096) if ready else b""
            assert more, f"no {word!r}, but {self.read!r}"
            self.read += more

    def send(self, name: str, send: Callable[[int, int], None] = os.kill) -> None:
        send(self.process.pid, getattr(signal, name))

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    @property
    def training(self) -> psutil.Process:
        return running_below(self.process.pid)[0]

    def finish(self) -> Outcome:
        return self.unstuck.finish(self.process, self.report, time.monotonic(), LIMIT)


def wait_until_gone(process: psutil.Process) -> None:
    deadline = time.monotonic() + LIMIT
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline, f"still there: {process}"
        time.sleep(0.05)


def sweep() -> None:
    """A supervisor that was killed cannot clean up."""
    for left in Path(os.environ["TMPDIR"]).glob("unstuck-*"):
        shutil.rmtree(left)


# --- passing on ----------------------------------------------------------------------------------------------


ALL = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGINT", "SIGQUIT", "SIGCONT")


@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["us", "group"])
def test_signal_reaches_the_child_once(unstuck: Runner, send: Callable[[int, int], None]) -> None:
    run = Started(unstuck, "counts_signals.py", *ALL)
    run.until("ready")
    time.sleep(A_SECOND_ONE)  # the supervisor has seen its flight file by now
    for name in ALL:
        run.send(name, send)
        run.until(f"got {name}")
    time.sleep(A_SECOND_ONE)
    run.close_input()
    assert run.until("counts") == f"counts {dict.fromkeys(ALL, 1)}"
    assert run.finish().code == 0


def test_the_same_signal_again_reaches_the_child_again(unstuck: Runner) -> None:
    run = Started(unstuck, "counts_signals.py", "SIGINT", "SIGUSR1")
    run.until("ready")
    for name in ("SIGINT", "SIGUSR1", "SIGINT", "SIGINT"):
        run.send(name)
        run.until(f"got {name}")
    run.close_input()
    assert run.until("counts") == "counts {'SIGINT': 3, 'SIGUSR1': 1}"
    assert run.finish().code == 0


@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["us", "group"])
def test_work_saved_at_interrupt_is_not_interrupted_again(unstuck: Runner, send: Callable[[int, int], None]) -> None:
    run = Started(unstuck, "saves_at_interrupt.py")
    run.until("ready")
    time.sleep(A_SECOND_ONE)
    run.send("SIGINT", send)
    outcome = run.finish()
    assert outcome.out == "saved\n"
    assert outcome.err.count("KeyboardInterrupt") == 1
    assert "unstuck:" not in outcome.err
    assert outcome.code == -signal.SIGINT
    assert outcome.report["run"]["outcome"] == "interrupted"
    assert outcome.report["findings"] == []


def test_handled_signals_do_no_harm(unstuck: Runner) -> None:
    """Whatever the interpreter is doing when one comes: the frames of a running one must not be read from a handler."""
    run = Started(unstuck, "handles_many.py")
    run.until("ready")
    training = run.training
    for _ in range(6000):
        training.send_signal(signal.SIGINT)
        training.send_signal(signal.SIGTERM)
        time.sleep(0.0003)
    run.close_input()
    assert int(run.until("handled").split()[1]) > 1000
    assert run.finish().code == 0


SHARES_WAKEUPS = """
import os, signal
read, write = os.pipe()
os.set_blocking(write, False)
print(signal.set_wakeup_fd(write), flush=True)
signal.signal(signal.SIGUSR1, lambda *_: None)
os.kill(os.getpid(), signal.SIGUSR1)
print(list(os.read(read, 9)) == [signal.SIGUSR1])
print(signal.set_wakeup_fd(-1) == write, signal.set_wakeup_fd(-1))
os.kill(os.getpid(), signal.SIGUSR1)
import select
print(select.select([read], [], [], 0)[0])
"""


def test_a_script_that_wants_the_bytes_of_signals_gets_them(unstuck: Runner) -> None:
    script = unstuck.folder / "wakeups.py"
    script.write_text(SHARES_WAKEUPS)
    outcome = unstuck.run(script)
    assert outcome.out == "-1\nTrue\nTrue -1\n[]\n"
    assert outcome.report["probes_off"] == []


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGQUIT"])
def test_we_die_of_the_signal_the_child_died_of(unstuck: Runner, name: str) -> None:
    run = Started(unstuck, "counts_signals.py")
    run.until("ready")
    run.send(name)
    outcome = run.finish()
    assert outcome.code == -getattr(signal, name)
    assert outcome.report["run"]["signal"] == getattr(signal, name)
    assert not list(unstuck.folder.glob("core*"))


def test_ignored_signals_stay_ignored(unstuck: Runner) -> None:
    script = unstuck.folder / "asks.py"
    script.write_text("import signal\nprint([signal.getsignal(s).name for s in (signal.SIGINT, signal.SIGHUP)])\n")
    shell = f"trap '' INT HUP; exec {sys.executable} -m unstuck run --python {sys.executable} asks.py"
    done = subprocess.run(["sh", "-c", shell], cwd=unstuck.folder, capture_output=True, text=True, timeout=LIMIT)
    assert done.stdout == "['SIG_IGN', 'SIG_IGN']\n", done.stderr


# --- standing still ------------------------------------------------------------------------------------------


def in_training(outcome: Outcome) -> list[dict[str, Any]]:
    """Findings of any kind about the training; importing torch may take longer than the little time given here."""
    return [finding for finding in outcome.report["findings"] if finding["where"]["step"]]


@pytest.mark.parametrize("whole", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["tree", "child"])
def test_stopped_time_does_not_count(unstuck: Runner, whole: bool) -> None:
    """The next test shows that as long a pause of its own would be a finding."""
    run = Started(unstuck, "pauses.py", "0", "8", flags=("--stall-after", "1.5"))
    run.until("moving")
    training = run.training
    time.sleep(0.5)
    run.send("SIGSTOP", os.killpg) if whole else training.suspend()
    time.sleep(5)
    assert training.status() == psutil.STATUS_STOPPED
    run.send("SIGCONT", os.killpg) if whole else training.resume()
    outcome = run.finish()
    assert outcome.out == "done\n"
    assert in_training(outcome) == []
    assert outcome.code == 0


def test_a_stall_that_recovers_is_withdrawn(unstuck: Runner) -> None:
    outcome = unstuck.run(SCRIPTS / "pauses.py", "5", "2.5", flags=("--stall-after", "1.5", "--fail-on", "warning"))
    assert outcome.out.split() == ["still", "moving", "done"]
    assert in_training(outcome)
    for finding in in_training(outcome):
        assert finding["withdrawn"]
        assert finding["severity"] == "info"
    assert "the run recovered" in outcome.err.lower()  # at once, or at the latest now
    assert outcome.code == 0


# --- how it ends ---------------------------------------------------------------------------------------------


def test_killing_us_ends_the_training(unstuck: Runner) -> None:
    run = Started(unstuck, "counts_signals.py")
    run.until("ready")
    training = run.training
    run.process.kill()
    wait_until_gone(training)
    sweep()


def test_a_detached_training_lives_on(unstuck: Runner) -> None:
    run = Started(unstuck, "counts_signals.py", flags=("--detach",))
    run.until("ready")
    training = run.training
    run.process.kill()
    run.process.wait(LIMIT)
    time.sleep(A_SECOND_ONE)
    assert training.is_running()
    run.close_input()
    run.until("counts")
    wait_until_gone(training)
    sweep()


def test_stop_ends_the_whole_tree(unstuck: Runner) -> None:
    run = Started(unstuck, "stubborn.py", flags=("--on-hang", "stop", "--stall-after", "1.5", "--grace", "2"))
    child = psutil.Process(int(run.until("child").split()[1]))
    training = run.training
    outcome = run.finish()
    assert outcome.code == 3
    assert outcome.report["run"]["outcome"] == "stopped"
    assert outcome.rules == ["lock-never-released"]
    wait_until_gone(training)
    wait_until_gone(child)


@pytest.mark.parametrize(("flags", "code"), [pytest.param((), 0, marks=pytest.mark.slow), (("--fail-on", "error"), 4)])
def test_fail_on(unstuck: Runner, flags: tuple[str, ...], code: int) -> None:
    run = Started(unstuck, "gives_up.py", flags=("--stall-after", "1.5", *flags))
    run.until("stuck")
    time.sleep(4)
    run.send("SIGINT")
    outcome = run.finish()
    assert outcome.out == "gave up\n"
    assert outcome.rules == ["lock-never-released"]
    assert outcome.code == code


def test_exit_code_of_a_run_without_findings(unstuck: Runner) -> None:
    script = unstuck.folder / "ends.py"
    script.write_text("raise SystemExit(7)\n")
    assert unstuck.run(script, flags=("--fail-on", "warning")).code == 7
