"""What the tests of `unstuck.DataLoader` check each time: nothing is lost, and nothing is left behind."""

from __future__ import annotations

import gc
import os
import time
from collections import Counter
from multiprocessing import forkserver, resource_tracker
from typing import Any

import pytest
import torch

from tests.processes import running_below, words_of

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
    lines = [" ".join(words_of(child)) for child in running_below(os.getpid())]
    return [line for line in lines if line and not any(part in line for part in MULTIPROCESSINGS)]


def keys(loader: Any) -> list[int]:
    return [int(key) for batch in loader for key in torch.as_tensor(batch["key"]).reshape(-1)]


def conserved(loader: Any, delivered: list[int], drawn: Any, epoch: int = 0) -> None:
    bad = [row.sample for row in loader.bad_samples if row.epoch == epoch]
    assert Counter(delivered) + Counter(bad) == Counter(drawn)
