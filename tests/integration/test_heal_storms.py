"""`unstuck.DataLoader` in a storm: workers killed at random instants, samples of all kinds of faults, memory and files
that run out. Every epoch ends, nothing is lost, nothing is left behind."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

import unstuck
from tests import memory_group
from tests.conftest import can_mount
from tests.integration.loader_checks import conserved, keys, nothing_left  # noqa: F401
from tests.integration.loader_data import Faulty, LargeStream, Numbers, Raw, Slow, Stream, as_they_are, by_key
from unstuck.heal.loader.quarantine import LoaderError

pytestmark = pytest.mark.usefixtures("nothing_left")
HERE = Path(__file__).parents[2]


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

    def stop(self) -> None:
        self.over.set()
        self.thread.join()
        self.iterator = None

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
        storm.stop()
        if loader._iterator is not None:
            loader._iterator._shutdown_workers()
    assert not loader.bad_samples


def test_all_kinds_of_faults_at_once(tmp_path: Path) -> None:
    faults = {13: "segfaults", 14: "raises", 15: "hangs", 40: "exits", 41: "raises oddly", 77: "spins", 90: "leaves"}
    file = tmp_path / "bad.jsonl"
    loader = unstuck.DataLoader(
        Faulty(120, **{f"_{key}": fault for key, fault in faults.items()}),
        batch_size=5,
        shuffle=True,
        num_workers=2,
        sample_timeout=1,
        on_bad_sample="skip",
        max_bad=len(faults),
        quarantine=file,
    )
    storm = Storm(4, 0)
    storm.thread.start()
    delivered = []
    try:
        for batch in (iterator := iter(loader)):
            storm.iterator = iterator
            delivered += batch["key"].tolist()
            storm.batches += 1
    finally:
        storm.stop()
    del iterator
    conserved(loader, delivered, range(120))
    assert {json.loads(line)["sample"] for line in file.read_text().splitlines()} == set(faults)


@pytest.mark.parametrize("persistent", [False, True])
def test_a_storm_over_a_stream(persistent: bool) -> None:
    chance = random.Random(5)
    loader = unstuck.DataLoader(Stream(200), batch_size=3, num_workers=2, retries=30, persistent_workers=persistent)
    for _ in range(2):
        seen, iterator = [], iter(loader)
        for batch in iterator:
            seen += batch["key"].tolist()
            if chance.random() < 0.15:
                end(chance.choice(iterator._workers).pid)
        assert sorted(seen) == list(range(200))
    iterator._shutdown_workers()


def test_workers_killed_while_they_write() -> None:
    """Each batch takes a while to be written, and no part of one is ever handed out."""
    chance = random.Random(3)
    loader = unstuck.DataLoader(
        Raw(60), batch_size=4, num_workers=2, collate_fn=as_they_are, retries=50, max_restarts=1000
    )
    over, iterator, seen = threading.Event(), iter(loader), []

    def kill() -> None:
        while not over.wait(chance.random() * 0.3):
            end(chance.choice(iterator._workers).pid)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        for batch in iterator:
            for sample in batch:
                seen.append(sample["key"])
                assert sample["value"] == bytes([sample["key"]]) * 5_000_000
    finally:
        over.set()
        thread.join()
    assert seen == list(range(60))


def end(pid: int) -> None:
    if pid != os.getpid():  # of a worker that has not begun
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


# --- memory ----------------------------------------------------------------------------------------------------

IN_A_GROUP = """
import sys
import unstuck
from tests.integration.loader_data import Faulty
from tests.integration.loader_checks import keys

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
            cwd=HERE,
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
from tests.integration.loader_checks import keys

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
        cwd=HERE,
    )
    assert process.stdout.splitlines() == ["True ()", "True ()"], process.stderr


@contextmanager
def few_files(more: int) -> Iterator[None]:
    """No more than so many besides those that are open."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("kept", [False, True])
def test_too_many_open_files(kept: bool) -> None:
    """Batches of many tensors, where few descriptors are allowed, and those of earlier batches are still in use."""
    loader = unstuck.DataLoader(Numbers(240, large=True), batch_size=20, num_workers=2, collate_fn=by_key)
    with few_files(40):
        batches = list(loader) if kept else loader
        assert keys(batches) == list(range(240))


def test_too_many_open_files_where_a_batch_cannot_be_fetched_again() -> None:
    """A stream: the batches that were read so far are kept, and their descriptors with them."""
    loader = unstuck.DataLoader(LargeStream(400), batch_size=1, num_workers=1)
    kept: list[Any] = []
    with few_files(30), pytest.raises(LoaderError, match="too many open files"):
        kept.extend(loader)
    assert keys(kept) == list(range(len(kept)))


# --- the end ---------------------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys, threading, time
import unstuck
from tests.integration.loader_data import Faulty

def train():
    loader = unstuck.DataLoader(
        Faulty(64, _20="spins", _30="hangs"), batch_size=4, num_workers=2, multiprocessing_context=sys.argv[2]
    )
    iterator = iter(loader)
    next(iterator)
    time.sleep(0.5)
    print(*(worker.pid for worker in iterator._workers), flush=True)
    if sys.argv[1] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    if sys.argv[3] == "main":
        train()
    else:
        threading.Thread(target=train).start()
"""


@pytest.mark.parametrize(
    ("how", "method", "thread"),
    [
        ("killed", "fork", "main"),
        ("killed", "fork", "other"),
        ("killed", "forkserver", "main"),
        ("ended", "fork", "main"),
        pytest.param("killed", "spawn", "other", marks=pytest.mark.slow),
        pytest.param("killed", "forkserver", "other", marks=pytest.mark.slow),
        pytest.param("ended", "spawn", "main", marks=pytest.mark.slow),
    ],
)
def test_workers_do_not_outlive_the_training(how: str, method: str, thread: str) -> None:
    """Two hang by then, or will: one keeps a core busy, one sleeps."""
    command = [sys.executable, "-c", KILLED, how, method, thread]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=HERE)
    pids = [int(pid) for pid in process.stdout.split()]
    assert len(pids) == 2, process.stderr
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and any(map(alive, pids)):
        time.sleep(0.05)
    assert not any(map(alive, pids))


def alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_iterators_that_are_left_half_way() -> None:
    for number in range(8):
        loader = unstuck.DataLoader(
            Numbers(200, large=True), batch_size=3, num_workers=2, prefetch_factor=4, persistent_workers=number % 2 == 0
        )
        iterator = iter(loader)
        for _ in range(number % 4):
            next(iterator)
        if number % 3 == 0:
            end(iterator._workers[0].pid)
        del iterator, loader  # and the fixture sees what is left


def test_several_at_once() -> None:
    chance = random.Random(1)
    loaders = [
        unstuck.DataLoader(
            Faulty(60, _5="exits", _33="raises"), batch_size=4, num_workers=2, on_bad_sample="skip", max_bad=2
        )
        for _ in range(3)
    ]
    open_ones = {number: iter(loader) for number, loader in enumerate(loaders)}
    delivered: list[list[int]] = [[] for _ in loaders]
    while open_ones:
        number = chance.choice(sorted(open_ones))
        try:
            delivered[number] += next(open_ones[number])["key"].tolist()
        except StopIteration:
            del open_ones[number]
    for loader, found in zip(loaders, delivered, strict=True):
        conserved(loader, found, range(60))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # one in a hook of fork is only printed
def test_interrupts_at_any_instant() -> None:
    """Persistent workers, of which the training goes on to make use."""
    chance, main = random.Random(0), threading.main_thread().ident
    assert main is not None
    loader = unstuck.DataLoader(Slow(100), batch_size=4, num_workers=2, persistent_workers=True, collate_fn=by_key)
    inside = False

    def interrupt(*_: Any) -> None:
        if inside:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        for _ in range(8):
            timer = threading.Timer(chance.random() * 0.15, signal.pthread_kill, (main, signal.SIGINT))
            timer.start()
            try:
                inside = True
                keys(loader)
                inside = False  # still where an interrupt is caught
            except KeyboardInterrupt:
                inside = False
            timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert keys(loader) == list(range(100))
    loader._iterator._shutdown_workers()


PINNED = """
import torch
# As on a machine with a GPU: the thread that pins memory reads the batches, and replaces workers. It has no memory to
# pin here, and copies instead.
torch.accelerator.is_available = lambda *_: True
torch.accelerator.current_accelerator = lambda *_, **__: torch.device("cpu")
torch.accelerator.current_device_index = lambda: 0
torch.accelerator.set_device_index = lambda _: None
torch.Tensor.pin_memory = lambda self, *_: self.clone()
import unstuck
from tests.integration.loader_checks import conserved, keys
from tests.integration.loader_data import Faulty

if __name__ == "__main__":
    for persistent in (False, True):
        loader = unstuck.DataLoader(
            Faulty(40, _7="exits", _9="hangs", _20="raises", _21="segfaults"),
            batch_size=4, num_workers=2, on_bad_sample="skip", max_bad=4, sample_timeout=1,
            pin_memory=True, persistent_workers=persistent,
        )
        for epoch in range(2):
            conserved(loader, keys(loader), range(40), epoch)
    print("conserved")
"""


def test_a_thread_that_pins_memory() -> None:
    process = subprocess.run(
        [sys.executable, "-c", PINNED], capture_output=True, text=True, timeout=120, cwd=HERE, check=False
    )
    assert process.stdout.strip() == "conserved", process.stderr
