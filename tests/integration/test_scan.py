"""`unstuck scan` reads the whole dataset and says which samples raise, hang, are slow or have values missing."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Runner

SCRIPT = Path(__file__).parent / "scripts" / "scanned.py"


def scan(unstuck: Runner, *words: str, flags: tuple[str, ...] = (), after: str = "") -> tuple[int, str, str, Any]:
    """`unstuck scan`; `after`: Ctrl-C once the script has made this file."""
    report = unstuck.folder / f"scan-{len(unstuck.processes)}.json"
    began = time.monotonic()
    process = unstuck.start(
        "scan", "--python", sys.executable, "--workers", "2", *flags, "--report", report, SCRIPT, *words
    )
    if after:
        while not (unstuck.folder / after).exists() and time.monotonic() - began < 90:
            time.sleep(0.05)
        time.sleep(1.0)
        os.killpg(process.pid, signal.SIGINT)
    outcome = unstuck.finish(process, report, began)
    return outcome.code, outcome.out, outcome.err, outcome.report


def test_scan_lists_what_raises_hangs_is_slow_or_missing_and_goes_on(unstuck: Runner) -> None:
    code, out, err, report = scan(unstuck, "bad", flags=("--seconds-per-sample", "1.5"))
    assert code == 1, err
    found = {(f["rule"], f["where"]["sample"]): f for f in report["findings"]}
    assert {("sample-spins", 1200), ("progress-unknown", 1300), ("sample-raises", 100)} <= found.keys()
    assert found["missing-values", 55]["severity"] == "info"
    assert "broken record 100" in found["sample-raises", 100]["evidence"][0]
    assert found["sample-spins", 1200]["where"]["file"].endswith("scanned.py")
    assert "3,000 samples" in out
    assert "700 (" in out
    assert "10 = 2000" in out
    assert "trained" not in out + err


def test_scan_of_good_data_says_so(unstuck: Runner) -> None:
    code, out, err, report = scan(unstuck, "good", flags=("--limit", "500"))
    assert code == 0, out + err
    assert report["findings"] == []
    assert "Nothing found" in out
    assert "500 of 3,000 samples" in out
    assert "the dataset is Records" in out


@pytest.mark.slow
def test_scan_of_a_stream(unstuck: Runner) -> None:
    code, out, err, report = scan(unstuck, "stream")
    assert code == 1, out + err
    assert [f["rule"] for f in report["findings"]] == ["sample-raises"]
    assert report["findings"][0]["where"]["sample"] == 400


@pytest.mark.slow
def test_scan_in_spawned_workers(unstuck: Runner) -> None:
    code, out, err, _ = scan(unstuck, "spawn", flags=("--limit", "300"))
    assert code == 0, out + err
    assert "300 of 3,000 samples" in out
    assert "leaked" not in err


@pytest.mark.slow
def test_ctrl_c_tells_what_was_seen(unstuck: Runner) -> None:
    code, out, err, _ = scan(unstuck, "long", after="began")
    assert code == 1, out + err
    assert "interrupted" in out
    assert "missing-values" in out


@pytest.mark.slow
def test_a_script_that_fails_before_is_told_from_an_empty_one(unstuck: Runner) -> None:
    code, _, err, _ = scan(unstuck, "dies")
    assert code == 2
    assert "no such table" in err
    assert "exit code 1" in err
    code, _, err, _ = scan(unstuck, "nothing")
    assert code == 2
    assert "without iterating a DataLoader" in err


LAUNCHER = """
import subprocess, sys
for fold in range(2):
    subprocess.run([sys.executable, sys.argv[1], "good"], check=True)
    open("uploaded", "w").close()
"""
KEYED = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

class Keyed(Dataset):
    def __init__(self):
        self.rows = {f"id{n}": (torch.randn(4), [n] * (n % 7)) for n in range(300)}
    def __len__(self):
        return 300
    def __getitem__(self, key):
        if key == "id7":
            raise KeyboardInterrupt
        return self.rows[key]

class Keys(Sampler):
    def __iter__(self):
        return iter([f"id{n}" for n in range(300)])
    def __len__(self):
        return 300

model = nn.Linear(4, 1)
for x in DataLoader(Keyed(), sampler=Keys(), batch_size=5, collate_fn=lambda rows: torch.stack([x for x, _ in rows])):
    model(x).sum().backward()
"""


@pytest.mark.slow
def test_what_started_the_scanned_process_does_not_go_on(unstuck: Runner) -> None:
    launcher = unstuck.folder / "launch.py"
    launcher.write_text(LAUNCHER)
    began = time.monotonic()
    outcome = unstuck.finish(
        unstuck.start("scan", "--python", sys.executable, launcher, SCRIPT), unstuck.folder / "none", began
    )
    assert outcome.code == 0, outcome.err
    assert outcome.out.count("samples in") == 1
    assert not (unstuck.folder / "uploaded").exists()


def test_other_keys_ragged_lists_and_an_interrupt_of_the_dataset(unstuck: Runner) -> None:
    script = unstuck.folder / "keyed.py"
    script.write_text(KEYED)
    began = time.monotonic()
    outcome = unstuck.finish(unstuck.start("scan", "--python", sys.executable, script), unstuck.folder / "none", began)
    assert outcome.code == 1, outcome.err
    assert "Sample 7 raises KeyboardInterrupt" in outcome.out
    assert "key 'id7'" in outcome.out
    assert "300 samples" in outcome.out
    assert "duplicate" not in outcome.out
    assert "Traceback" not in outcome.err


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_nothing_is_left_of_a_scan_that_is_ended(unstuck: Runner, number: int) -> None:
    import psutil

    process = unstuck.start("scan", "--python", sys.executable, "--workers", "2", SCRIPT, "long")
    began = time.monotonic()
    while not (unstuck.folder / "began").exists() and time.monotonic() - began < 90:
        time.sleep(0.05)
    below = psutil.Process(process.pid).children(recursive=True)
    assert below
    os.kill(process.pid, number)
    process.wait(30)
    assert process.returncode == -number
    assert psutil.wait_procs(below, timeout=10)[1] == []
    for folder in Path(os.environ["TMPDIR"]).glob(f"unstuck-{process.pid}-*"):
        assert number == signal.SIGKILL  # nobody was left to remove it
        shutil.rmtree(folder)
