"""What we compute starts no pool of threads, and the number that the training has set stays what it was."""

from __future__ import annotations

import subprocess
import sys

import torch

from unstuck.recorder import governor

SCRIPT = """
import os, sys, torch
from unstuck.recorder import governor

torch.set_num_threads(4)
rows = torch.empty(512, 512)
count = len(os.listdir("/proc/self/task"))
with governor.Reading():
    assert torch.get_num_threads() == 1
    with governor.Reading():
        rows.fill_(2.0).sort(0)
    rows.double().sum()
assert torch.get_num_threads() == 4
assert len(os.listdir("/proc/self/task")) == count, "a pool was started"
rows.sin()
assert len(os.listdir("/proc/self/task")) > count, "the training's own"
"""


def test_reading_starts_no_threads() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_number_of_one_is_left_alone() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        with governor.Reading():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
