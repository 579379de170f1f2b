"""A scan in the script's own process: what raises or hangs is listed, and it goes on."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import torch

from unstuck.recorder.records.data import Scanned
from unstuck.scanning import pass_outcome
from unstuck.scanning import plan as scan_plan
from unstuck.scanning.full_pass import FullPass
from unstuck.takeover.interrupts import Patience


def record(scan: FullPass) -> Scanned:
    return pass_outcome.record(scan, pass_outcome.describe(scan.plan, None))


class Rows:
    def __len__(self) -> int:
        return 60

    def __getitem__(self, index: int) -> Any:
        if index == 7:
            raise ValueError("broken")
        if index == 30:
            time.sleep(20)
        return torch.full((3,), float(index % 50)), index % 50


def test_in_the_own_process(tmp_path: Path) -> None:
    plan = scan_plan.of_dataset(Rows(), None, 2, False)
    plan.read_alone("it is tried")
    plan.here = True
    scan = FullPass(plan, 0.3, folder=str(tmp_path))
    scan.run(lambda *_: None)
    about = record(scan)
    assert about.done == 60
    assert [each.sample for errors in about.errors for each in errors.first] == [7]
    assert [each.sample for each in about.hung] == [30]
    site = about.hung[0].site
    assert site is not None
    assert site[2].endswith("__getitem__")
    assert about.duplicated == 9  # 57 is not one: 7 could not be had
    assert not scan.interrupted


def test_ctrl_c(tmp_path: Path) -> None:
    plan = scan_plan.of_dataset(Rows(), None, 2, False)
    plan.here = True

    patience = Patience()

    def stop(*_: object) -> None:
        patience.stopped = True

    scan = FullPass(plan, 10.0, patience, str(tmp_path))
    scan.run(stop)
    about = record(scan)
    assert about.interrupted
    assert about.done == 30
    assert about.hung == []


class OnGpu(Rows):
    def __init__(self) -> None:
        self.process = os.getpid()

    def __getitem__(self, index: int) -> Any:
        if os.getpid() != self.process:
            raise RuntimeError("Cannot re-initialize CUDA in forked subprocess. Use 'spawn'.")
        return torch.zeros(3), index


def test_what_a_forked_process_cannot_give_is_read_here(tmp_path: Path) -> None:
    scan = FullPass(scan_plan.of_dataset(OnGpu(), None, 2, False), 10.0, folder=str(tmp_path))
    scan.run(lambda *_: None)
    about = record(scan)
    assert (about.done, about.failed, about.workers) == (60, 0, 0)
