"""What the tests of `unstuck.DataLoader` check each time: nothing is lost, and nothing is left behind."""

from __future__ import annotations

import gc
import os
import time
from collections import Counter
from multiprocessing import forkserver, resource_tracker
from typing import Any

import psutil
import pytest
import torch

MULTIPROCESSINGS = ("resource_tracker", "multiprocessing.forkserver import main")  # they stay


@pytest.fixture
def nothing_left() -> Any:
    """No worker outlives its loader, and no descriptor stays open."""
    forkserver.ensure_running()
    resource_tracker.ensure_running()
    before = len(os.listdir("/proc/self/fd"))
    yield
    gc.collect()  # an exception that was expected holds the iterator it came through
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and (_children() or len(os.listdir("/proc/self/fd")) > before):
        time.sleep(0.05)
    assert _children() == []
    assert len(os.listdir("/proc/self/fd")) <= before


def _children() -> list[str]:
    found = []
    for child in psutil.Process().children(recursive=True):
        try:
            line = " ".join(child.cmdline())
            if child.status() != psutil.STATUS_ZOMBIE and not any(part in line for part in MULTIPROCESSINGS):
                found.append(line)
        except psutil.Error:
            continue
    return found


def keys(loader: Any) -> list[int]:
    return [int(key) for batch in loader for key in torch.as_tensor(batch["key"]).reshape(-1)]


def conserved(loader: Any, delivered: list[int], drawn: Any, epoch: int = 0) -> None:
    bad = [row.sample for row in loader.bad_samples if row.epoch == epoch]
    assert Counter(delivered) + Counter(bad) == Counter(drawn)
