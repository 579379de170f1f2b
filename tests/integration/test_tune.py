"""`unstuck tune` on real scripts, and `unstuck.tune` on a real loader."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import unstuck as package
from tests.conftest import LIMIT, Outcome, Runner

SCRIPT = Path(__file__).parent / "scripts" / "tuned.py"


def tune(unstuck: Runner, *words: str | Path, seconds: float = 6) -> Outcome:
    process = unstuck.start("tune", "--seconds", str(seconds), *words)
    assert process.stdin is not None
    process.stdin.write(b"a line\n")
    process.stdin.flush()
    return unstuck.finish(process, unstuck.folder / "none", time.monotonic(), LIMIT)


def unwrapped(text: str) -> str:
    """Sentences as they are, wherever their lines end."""
    return " ".join(text.split())


def test_a_dataset_that_waits_gets_workers_and_the_file_stays(unstuck: Runner) -> None:
    before = SCRIPT.read_bytes()
    done = tune(unstuck, SCRIPT, "waits", "0", "0")
    assert done.code == 0, done.err
    assert "begins ['waits', '0', '0'] 'a line\\n'" in done.out
    assert "trained to the end" not in done.out
    assert "Choice: " in done.out
    assert "tuned.py:29: num_workers=" in done.out
    assert "There num_workers is WORKERS: let that be " in done.out
    assert "The whole training would be " in unwrapped(done.out)
    assert SCRIPT.read_bytes() == before
    assert "the training loader of Rows" in done.err


def test_data_that_do_not_limit_are_left_as_they_are(unstuck: Runner) -> None:
    done = tune(unstuck, SCRIPT, "plain", "1", "0.1", seconds=4)
    assert done.code == 0, done.err
    assert "Keep what you have" in done.out
    assert "+++" not in done.out


def test_a_dataset_that_raises_in_workers_is_told_and_kept(unstuck: Runner) -> None:
    done = tune(unstuck, SCRIPT, "refuses", "0", "0", seconds=4)
    assert done.code == 0, done.err
    assert "ValueError: not in a worker" in unwrapped(done.out)
    assert "Keep what you have" in done.out


def test_the_process_above_does_not_go_on_and_no_worker_runs_the_script_again(unstuck: Runner) -> None:
    done = tune(unstuck, SCRIPT.with_name("folds.py"), seconds=2)
    assert done.code == 0, done.err
    assert (unstuck.folder / "notes.txt").read_text() == "started\n"
    assert "No worker was started: with the start method spawn" in unwrapped(done.out)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("records", "Records reads through a file that is open already (file)"),
        ("stream", "no more than one was tried"),
        ("harder", "the script sets level (not_in_workers.py:"),
        ("plain", "num_workers=0, timeout=0, multiprocessing_context=None)"),
    ],
)
def test_what_workers_would_break_is_said(unstuck: Runner, kind: str, said: str) -> None:
    done = tune(unstuck, SCRIPT.with_name("not_in_workers.py"), kind, seconds=10)
    assert done.code == 0, done.err
    assert said in unwrapped(done.out)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("raise ValueError('no such config')", "the script died before it used a DataLoader (exit code 1)"),
        ("print('nothing to do')", "the script finished without iterating a DataLoader"),
    ],
)
def test_a_script_that_never_comes_to_a_loader(unstuck: Runner, text: str, said: str) -> None:
    script = unstuck.folder / "short.py"
    script.write_text(text)
    done = tune(unstuck, script)
    assert done.code == 2
    assert said in done.err
    assert "likely cause: " in done.err
    assert "next: unstuck run " in done.err


def test_ctrl_c_gives_the_best_so_far(unstuck: Runner) -> None:
    process = unstuck.start("tune", "--seconds", "300", SCRIPT, "waits", "0", "0", env={"PYTHONUNBUFFERED": "1"})
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write(b"\n")
    process.stdin.flush()
    for line in process.stderr:
        if b"best so far: 0 workers" in line:
            break
    time.sleep(3)
    os.killpg(process.pid, signal.SIGINT)
    done = unstuck.finish(process, unstuck.folder / "none", time.monotonic(), LIMIT)
    assert done.code == 0
    assert "best so far" in done.out
    assert "0 workers" in done.out
    assert "Traceback" not in done.err


@pytest.mark.parametrize("words", [[], ["--", "torchrun", "train.py"], ["--seconds", "0", "x.py"], ["gone.py"]])
def test_wrong_usage(unstuck: Runner, words: list[str]) -> None:
    process = unstuck.start("tune", *words)
    assert unstuck.finish(process, unstuck.folder / "none", time.monotonic()).code == 2


# --- in code ---------------------------------------------------------------------------------------------------


class Waiting(Dataset):  # type: ignore[misc]
    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, index: int) -> Any:
        time.sleep(0.004)
        return torch.rand(4) + random.random()


def test_in_code_nothing_is_printed_used_up_or_left(capfd: pytest.CaptureFixture[str]) -> None:
    generator = torch.Generator().manual_seed(1)
    loader = DataLoader(Waiting(), batch_size=16, shuffle=True, generator=generator)
    states = generator.get_state(), torch.get_rng_state(), random.getstate()
    before = multiprocessing.active_children()
    tuned = package.tune(loader, seconds=16, consume=lambda batch: batch.sum())
    assert torch.equal(generator.get_state(), states[0])
    assert torch.equal(torch.get_rng_state(), states[1])
    assert random.getstate() == states[2]
    assert multiprocessing.active_children() == before
    assert capfd.readouterr() == ("", "")
    assert not tuned.keep
    assert tuned.settings["num_workers"] > 1
    assert tuned.gain > 1.5
    assert tuned.training is not None
    assert tuned.training.speedup > 1.5
    assert set(tuned.settings) == {"num_workers", "prefetch_factor", "persistent_workers", "pin_memory"}


def test_in_code_ctrl_c_gives_the_best_so_far() -> None:
    interrupt = threading.Timer(2.0, os.kill, (os.getpid(), signal.SIGINT))
    interrupt.start()
    tuned = package.tune(DataLoader(Waiting(), batch_size=16), seconds=100)
    assert tuned.interrupted
    assert tuned.table
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_seconds_must_be_some() -> None:
    with pytest.raises(ValueError, match="above 0"):
        package.tune(DataLoader([1]), seconds=0)
