"""`unstuck.DataLoader` on faulty data: the epoch ends, and every sample drawn is either there or quarantined."""

from __future__ import annotations

import gc
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from multiprocessing import forkserver, resource_tracker
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

import unstuck
from tests import memory_group
from tests.conftest import can_mount
from tests.integration.loader_data import (
    Faulty,
    FaultyInBatches,
    Generated,
    Numbers,
    Ragged,
    Slow,
    Stream,
    by_key,
)
from unstuck.heal.loader.quarantine import BadSampleError, LoaderError, TooManyBadSamples, WorkersKeepDying

MULTIPROCESSINGS = ("resource_tracker", "multiprocessing.forkserver import main")  # they stay
DEADLY = ["segfaults", "is killed", "exits", "leaves", "hangs", "spins"]


@pytest.fixture(autouse=True)
def _nothing_left() -> Any:
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


@pytest.mark.parametrize("fault", DEADLY)
@pytest.mark.parametrize("data", [Faulty, FaultyInBatches])
def test_a_deadly_sample_costs_that_sample(fault: str, data: Any, tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    loader = unstuck.DataLoader(
        data(20, _13=fault), batch_size=3, num_workers=2, on_bad_sample="skip", sample_timeout=1, quarantine=file
    )
    assert keys(loader) == [key for key in range(20) if key != 13]
    row = json.loads(file.read_text())
    assert (row["sample"], row["batch"], row["epoch"]) == (13, 4, 0)
    assert row["reason"] == ("hung" if fault in ("hangs", "spins") else "killed its worker")
    if fault in ("hangs", "spins", "segfaults"):
        assert "loader_data.py" in row["traceback"]


def test_a_second_epoch_does_not_try_it_again() -> None:
    loader = unstuck.DataLoader(Faulty(16, _3="exits"), batch_size=4, num_workers=1, on_bad_sample="skip")
    for epoch in range(2):
        conserved(loader, keys(loader), range(16), epoch)
    assert [row.reason for row in loader.bad_samples] == ["killed its worker", "known"]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("data", [Faulty, FaultyInBatches])
@pytest.mark.parametrize("fault", ["raises", "raises oddly"])
def test_a_sample_that_raises(workers: int, data: Any, fault: str) -> None:
    loader = unstuck.DataLoader(data(20, _7=fault), batch_size=4, num_workers=workers, on_bad_sample="skip")
    conserved(loader, keys(loader), range(20))
    (row,) = loader.bad_samples
    assert row.sample == 7
    assert row.reason == "raised"
    assert "loader_data.py" in row.traceback


@pytest.mark.parametrize("workers", [0, 2])
def test_raise_is_what_torch_does(workers: int) -> None:
    data = Faulty(20, _7="raises")
    loader = iter(unstuck.DataLoader(data, batch_size=4, num_workers=workers))
    assert len(next(loader)["key"]) == 4
    with pytest.raises(ValueError, match="cannot read sample 7"):
        next(loader)
    assert next(loader)["key"].tolist() == [8, 9, 10, 11]


def test_raise_names_a_sample_that_kills_its_worker() -> None:
    loader = iter(unstuck.DataLoader(Faulty(12, _5="segfaults"), batch_size=4, num_workers=1))
    next(loader)
    with pytest.raises(BadSampleError, match=r"sample 5 of batch 1 is bad: its worker was killed by SIGSEGV"):
        next(loader)
    assert next(loader)["key"].tolist() == [8, 9, 10, 11]


@pytest.mark.parametrize("fault", ["raises", "exits"])
def test_replace_keeps_the_size_of_the_batch(fault: str) -> None:
    loader = unstuck.DataLoader(Faulty(12, _5=fault), batch_size=4, num_workers=1, on_bad_sample="replace")
    batches = [batch["key"].tolist() for batch in loader]
    assert batches == [[0, 1, 2, 3], [4, batches[1][1], 6, 7], [8, 9, 10, 11]]
    assert batches[1][1] in (4, 6, 7)
    assert [row.sample for row in loader.bad_samples] == [5]


@pytest.mark.parametrize("fault", ["raises", "is killed"])
@pytest.mark.parametrize("in_order", [True, False])
def test_without_batches(fault: str, in_order: bool) -> None:
    loader = unstuck.DataLoader(
        Faulty(20, _5=fault, _11=fault),
        batch_size=None,
        num_workers=2,
        on_bad_sample="skip",
        max_bad=2,
        in_order=in_order,
    )
    conserved(loader, keys(loader), range(20))
    assert {row.sample for row in loader.bad_samples} == {5, 11}


def test_a_batch_of_which_nothing_is_left_is_passed_over() -> None:
    faults = {f"_{index}": "raises" if index % 2 else "exits" for index in range(4, 8)}
    loader = unstuck.DataLoader(Faulty(12, **faults), batch_size=4, num_workers=2, on_bad_sample="skip", max_bad=4)
    assert [batch["key"].tolist() for batch in loader] == [[0, 1, 2, 3], [8, 9, 10, 11]]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_sample_that_does_not_fit_the_others(workers: int) -> None:
    loader = unstuck.DataLoader(Ragged(24), batch_size=8, num_workers=workers, on_bad_sample="skip")
    conserved(loader, keys(loader), range(24))
    assert [(row.sample, row.reason) for row in loader.bad_samples] == [(9, "collate")]


def test_too_many_bad_samples_stop_it() -> None:
    faults = {f"_{index}": "raises" for index in range(0, 40, 5)}
    loader = unstuck.DataLoader(Faulty(40, **faults), batch_size=4, num_workers=2, on_bad_sample="skip", max_bad=3)
    with pytest.raises(TooManyBadSamples, match=r"4 of \d+ samples drawn in epoch 0 are bad, and max_bad=3"):
        keys(loader)


def test_a_share_may_be_bad() -> None:
    faults = {f"_{index}": "raises" for index in range(0, 40, 10)}
    for share, fits in ((0.1, True), (0.07, False)):
        loader = unstuck.DataLoader(Faulty(40, **faults), batch_size=4, on_bad_sample="skip", max_bad=share)
        if fits:
            conserved(loader, keys(loader), range(40))
        else:
            with pytest.raises(TooManyBadSamples):
                keys(loader)


def test_too_many_restarts_stop_it() -> None:
    faults = {f"_{index}": "exits" for index in range(0, 40, 4)}
    loader = unstuck.DataLoader(
        Faulty(40, **faults), batch_size=4, num_workers=1, on_bad_sample="skip", max_bad=40, max_restarts=3
    )
    with pytest.raises(WorkersKeepDying, match="max_restarts=3"):
        keys(loader)


def _die(_: int) -> None:
    os._exit(9)


def test_workers_that_never_start_stop_it() -> None:
    loader = unstuck.DataLoader(Numbers(), num_workers=2, worker_init_fn=_die)
    with pytest.raises(WorkersKeepDying, match="died before they fetched anything; the last one exited with code 9"):
        keys(loader)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_other_start_methods(method: str) -> None:
    loader = unstuck.DataLoader(
        Faulty(12, _5="segfaults"), batch_size=4, num_workers=1, on_bad_sample="skip", multiprocessing_context=method
    )
    conserved(loader, keys(loader), range(12))
    assert "loader_data.py" in loader.bad_samples[0].traceback


def test_persistent_workers_through_epochs_left_early() -> None:
    loader = unstuck.DataLoader(
        Faulty(32, _9="exits"), batch_size=4, num_workers=2, on_bad_sample="skip", persistent_workers=True
    )
    for batch in loader:
        assert len(batch["key"]) == 4
        os.kill(loader._iterator._workers[1].pid, signal.SIGKILL)
        break
    conserved(loader, keys(loader), range(32), epoch=1)
    conserved(loader, keys(loader), range(32), epoch=2)
    loader._iterator._shutdown_workers()


# --- streams ---------------------------------------------------------------------------------------------------


def test_a_killed_worker_of_a_stream_is_replaced_where_it_was() -> None:
    loader = unstuck.DataLoader(Stream(60), batch_size=2, num_workers=2)
    seen = []
    for number, batch in enumerate(iterator := iter(loader)):
        seen += batch["key"].tolist()
        if number in (3, 8, 14):
            os.kill(iterator._workers[number % 2].pid, signal.SIGKILL)
    del iterator
    assert sorted(seen) == list(range(60))


def test_an_item_of_a_stream_that_kills_is_named() -> None:
    with pytest.raises(LoaderError, match=r"the stream of worker 0 cannot be read beyond item 4"):
        keys(unstuck.DataLoader(Stream(40, dies_at=10), batch_size=2, num_workers=2, on_bad_sample="skip"))


@pytest.mark.parametrize("workers", [0, 2])
def test_an_item_that_raises_is_left_out_where_the_stream_goes_on(workers: int) -> None:
    loader = unstuck.DataLoader(
        Stream(40, raises_at=10), batch_size=2, num_workers=workers, on_bad_sample="skip", max_bad=1
    )
    assert sorted(keys(loader)) == [key for key in range(40) if key != 10]
    loader = unstuck.DataLoader(
        Generated(40, raises_at=10), batch_size=2, num_workers=workers, on_bad_sample="skip", max_bad=1
    )
    with pytest.raises(ValueError, match="cannot read 10"):  # a generator is over, and the rest of it would be lost
        keys(loader)


# --- storms ----------------------------------------------------------------------------------------------------


class Storm:
    """Kills workers at random instants, until it has killed enough. Between two kills some batches come: on a machine
    that is too busy for that, batches would be hit so often that they look guilty."""

    def __init__(self, kills: int, seed: int) -> None:
        self.left, self.chance = kills, random.Random(seed)
        self.iterator: Any = None
        self.killed = {os.getpid()}
        self.batches = 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._kill)

    def _kill(self) -> None:
        while self.left and not self.over.is_set():
            wanted = self.batches + 2
            while self.batches < wanted and not self.over.is_set():
                time.sleep(0.001)
            time.sleep(self.chance.random() * 0.05)
            workers = getattr(self.iterator, "_workers", None)
            if not workers:
                continue
            pid = self.chance.choice(workers).pid
            if pid in self.killed:
                continue
            try:
                os.kill(pid, self.chance.choice((signal.SIGKILL, signal.SIGSEGV)))
                self.killed.add(pid)
                self.left -= 1
            except ProcessLookupError:
                pass


@pytest.mark.parametrize(
    ("kills", "seed"),
    [(12, 0), *(pytest.param(200, seed, marks=pytest.mark.slow) for seed in range(3))],
)
@pytest.mark.parametrize(
    "settings",
    [
        {"batch_size": 6, "collate_fn": by_key},
        {"batch_size": 6, "collate_fn": by_key, "persistent_workers": True},
        {"batch_size": None, "in_order": False},
    ],
    ids=["batches", "persistent", "samples"],
)
def test_storm(kills: int, seed: int, settings: dict[str, Any]) -> None:
    storm = Storm(kills, seed)
    loader = unstuck.DataLoader(
        Slow(240), shuffle=True, num_workers=2, retries=5, max_restarts=10_000, on_bad_sample="skip", **settings
    )
    storm.thread.start()
    epoch = 0
    try:
        while storm.left:
            delivered = []
            storm.iterator = iter(loader)
            for batch in storm.iterator:
                found = torch.as_tensor(batch["key"]).reshape(-1).tolist()
                delivered += found
                storm.batches += 1
                values = batch["all"] if "all" in batch else [batch["value"]]
                assert all((value == key).all() for key, value in zip(found, values, strict=True))
            conserved(loader, delivered, range(240), epoch)
            epoch += 1
    finally:
        storm.over.set()
        storm.thread.join()
        storm.iterator = None
        if loader._iterator is not None:
            loader._iterator._shutdown_workers()
    assert not loader.bad_samples


# --- memory ----------------------------------------------------------------------------------------------------

IN_A_GROUP = """
import sys
import unstuck
from tests.integration.loader_data import Faulty
from tests.integration.test_heal_loader import keys

if __name__ == "__main__":
    loader = unstuck.DataLoader(
        Faulty(24, _9="exhausts"), batch_size=4, num_workers=2, on_bad_sample="skip", quarantine=sys.argv[1]
    )
    print(keys(loader) == [key for key in range(24) if key != 9])
"""


def test_a_sample_that_exhausts_the_memory_of_a_group(tmp_path: Path) -> None:
    group = memory_group.make(900 << 20)
    if group is None:
        pytest.skip("no memory cgroup can be made here")
    file = tmp_path / "bad.jsonl"
    try:
        process = subprocess.run(
            [sys.executable, "-c", IN_A_GROUP, str(file)],
            preexec_fn=group.enter,
            capture_output=True,
            text=True,
            timeout=120,
            cwd=Path(__file__).parents[2],
        )
    finally:
        kills = group.kills
        group.remove()
    assert process.stdout.strip() == "True", process.stderr
    assert kills >= 2
    row = json.loads(file.read_text())
    assert (row["sample"], row["what"]) == (9, "its worker was killed by SIGKILL")


FULL = """
import sys
import unstuck
from tests.integration.loader_data import Numbers
from tests.integration.test_heal_loader import keys

if __name__ == "__main__":
    with open("/dev/shm/other", "wb") as file:
        file.write(b"x" * int(sys.argv[1]))
    for epoch in range(2):
        loader = unstuck.DataLoader(Numbers(64, large=True), batch_size=8, num_workers=2, prefetch_factor=4)
        print(all((batch["value"].mean(1) == batch["key"]).all() for batch in loader), loader.bad_samples)
"""


@pytest.mark.parametrize("taken", [0, 3 << 20, (4 << 20) - 4096], ids=["filling", "nearly full", "full"])
def test_shared_memory_that_is_full(taken: int) -> None:
    if not can_mount():
        pytest.skip("no file system can be mounted here")
    small = "mount -t tmpfs -o size=4m tmpfs /dev/shm && exec "
    process = subprocess.run(
        ["unshare", "-m", "sh", "-c", small + '"$@"', "sh", sys.executable, "-c", FULL, str(taken)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout.splitlines() == ["True ()", "True ()"], process.stderr


def test_too_many_open_files() -> None:
    """Batches of many tensors, where few descriptors are allowed: they come as bytes."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 40, before[1]))
    try:
        loader = unstuck.DataLoader(Numbers(240, large=True), batch_size=60, num_workers=2, collate_fn=by_key)
        assert keys(loader) == list(range(240))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


# --- the end ---------------------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys, time
import unstuck
from tests.integration.loader_data import Faulty

if __name__ == "__main__":
    iterator = iter(unstuck.DataLoader(Faulty(64, _20="spins", _30="hangs"), batch_size=4, num_workers=2))
    next(iterator)
    time.sleep(0.5)
    print(*(worker.pid for worker in iterator._workers), flush=True)
    if sys.argv[1] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("how", ["killed", "ended"])
def test_workers_do_not_outlive_the_training(how: str) -> None:
    process = subprocess.run(
        [sys.executable, "-c", KILLED, how],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path(__file__).parents[2],
    )
    pids = [int(pid) for pid in process.stdout.split()]
    assert len(pids) == 2, process.stderr
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and any(map(psutil.pid_exists, pids)):
        time.sleep(0.05)
    assert not any(map(psutil.pid_exists, pids))
