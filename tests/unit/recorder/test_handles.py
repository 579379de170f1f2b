"""Open files whose offset moves while this process rests; how the dataset names them, and what guards them."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.unit.recorder.untouchable import OddList, OddNumber, Untouchable, watching
from unstuck.recorder import attempts, flight, journal
from unstuck.recorder import layout as at
from unstuck.recorder.loading import Loading
from unstuck.recorder.probes.data import shared_handles
from unstuck.recorder.probes.data.shared_handles import SharedHandles
from unstuck.recorder.records.loaders import MovedHandle

TOLD = list[MovedHandle]


@pytest.fixture(autouse=True)
def told(monkeypatch: pytest.MonkeyPatch) -> TOLD:
    said: TOLD = []
    monkeypatch.setattr(journal, "tell", said.append)
    monkeypatch.setattr(attempts, "locks_files", lambda: False)
    return said


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> Iterator[SharedHandles]:
    """In a forked worker."""
    words = [0] * at.WORDS_END
    words[at.W_FORKED] = 1
    monkeypatch.setattr(flight, "words", words)
    made = SharedHandles()
    yield made
    made.remove()
    assert not flight.state[flight.WATCHED]


class Records:
    def __init__(self, path: Path, mode: str = "rb") -> None:
        path.write_bytes(bytes(100))
        self.files: dict[str, Any] = {"train": open(path, mode, buffering=0)}  # noqa: SIM115  # as datasets do

    def number(self) -> int:
        return int(self.files["train"].fileno())


class Fetcher:
    """One pass."""

    known: ClassVar[dict[int, Fetcher]] = {}

    def __new__(cls, dataset: Any) -> Fetcher:
        if id(dataset) not in cls.known:
            cls.known[id(dataset)] = super().__new__(cls)
        return cls.known[id(dataset)]

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset


def followed(probe: SharedHandles) -> list[int]:
    return [each.number for each in probe.followed]


def test_what_moves_while_it_rests_is_told_ever_more_rarely(tmp_path: Path, probe: SharedHandles, told: TOLD) -> None:
    data = Records(tmp_path / "a.bin")
    probe.worker_began()
    assert flight.state[flight.WATCHED] == shared_handles.BIT
    for turn in range(16):
        probe.fetch_began(Fetcher(data))
        data.files["train"].seek(0)
        probe.fetch_ended()
        os.lseek(data.number(), 10 + turn, os.SEEK_SET)
    assert [said.times for said in told] == [1, 2, 4, 8]
    assert told[0].seen == [(0, 10)]
    assert (told[0].attribute, told[0].worker) == ("files['train']", 0)
    assert told[0].opened is not None
    assert told[0].opened[2] == "Records.__init__"
    assert told[0].guarded is False
    data.files["train"].close()


def test_between_two_passes_anybody_may_read(tmp_path: Path, probe: SharedHandles, told: TOLD) -> None:
    data = Records(tmp_path / "a.bin")
    probe.worker_began()
    for turn in range(4):
        before = dict(Fetcher.known)
        Fetcher.known.clear()
        probe.fetch_began(Fetcher(data))
        before.clear()
        probe.fetch_ended()
        os.lseek(data.number(), 10 + turn, os.SEEK_SET)
    assert not told
    data.files["train"].close()


def test_what_moves_while_it_works_is_its_own(tmp_path: Path, probe: SharedHandles, told: TOLD) -> None:
    data = Records(tmp_path / "a.bin")
    probe.worker_began()
    for _ in range(4):
        probe.fetch_began(Fetcher(data))
        data.files["train"].seek(0)
        data.files["train"].read(50)
        probe.fetch_ended()
    assert not told
    assert probe._reads == 1, "and it was seen to read"
    data.files["train"].close()


@pytest.mark.parametrize("mode", ["ab", "a+b", "wb"])
def test_logs_are_not_followed(tmp_path: Path, probe: SharedHandles, mode: str) -> None:
    data = Records(tmp_path / "a.bin", mode)
    data.files["train"].write(b"x")
    probe.worker_began()
    assert data.number() not in followed(probe)
    data.files["train"].close()


def test_what_is_written_is_not_read(tmp_path: Path, probe: SharedHandles, told: TOLD) -> None:
    data = Records(tmp_path / "a.bin", "r+b")
    probe.worker_began()
    assert data.number() in followed(probe)
    for _ in range(3):
        probe.fetch_began(Fetcher(data))
        probe.fetch_ended()
        time.sleep(0.02)
        data.files["train"].write(b"x")
    probe.fetch_began(Fetcher(data))
    assert not told
    data.files["train"].close()


def test_a_number_that_is_another_files_by_now(tmp_path: Path, probe: SharedHandles, told: TOLD) -> None:
    data = Records(tmp_path / "a.bin")
    number = data.number()
    probe.worker_began()
    probe.fetch_began(Fetcher(data))
    probe.fetch_ended()
    data.files["train"].close()
    probe.fetch_began(Fetcher(data))
    (tmp_path / "b.bin").write_bytes(bytes(50))
    with open(tmp_path / "b.bin", "rb") as other:
        assert other.fileno() == number
        probe.fetch_ended()
        other.seek(5)
        probe.fetch_began(Fetcher(data))
    assert not told


class Loader:
    def __init__(self, persistent: bool) -> None:
        self.persistent_workers = persistent


class Drawing:
    """The iterator of a loader with workers, or of one without."""

    def __init__(self, workers: int) -> None:
        if workers:
            self._rcvd_idx = 0


def opened(number: int, workers: int, persistent: bool = False) -> Loading:
    known = Loading(number)
    loader = Loader(persistent)
    known.loader, known.workers, known.loaders = lambda: loader, workers, 1
    return known


def test_main_looks_while_it_waits_for_workers_only(tmp_path: Path, probe: SharedHandles, told: TOLD) -> None:
    flight.words[at.W_WORKER] = at.NONE
    data = Records(tmp_path / "a.bin")
    probe.pass_began(opened(0, 0), Drawing(0))
    assert not probe.followed
    probe.pass_began(opened(1, 2), Drawing(2))
    for workers in (0, 2):
        probe.batch_asked(Drawing(workers))
        os.lseek(data.number(), 5 + workers, os.SEEK_SET)
        probe.batch_fetched(Drawing(workers))
    assert [(said.seen, said.worker, said.attribute) for said in told] == [([(5, 7)], None, "")]
    data.files["train"].close()


def test_workers_that_live_on_are_followed_once_and_nobody_for_ever(tmp_path: Path, probe: SharedHandles) -> None:
    data = Records(tmp_path / "a.bin")
    stays, anew = opened(0, 2, persistent=True), opened(1, 2)
    probe.pass_began(stays, Drawing(2))
    before = probe.followed
    probe.pass_began(stays, Drawing(2))
    assert probe.followed is before
    probe.pass_began(anew, Drawing(2))
    for _ in range(shared_handles.MOST_BATCHES + 1):
        probe.batch_asked(Drawing(2))
        probe.batch_fetched(Drawing(2))
    assert not probe.followed
    probe.pass_began(anew, Drawing(2))
    assert not probe.followed
    data.files["train"].close()


LOCK = multiprocessing.Lock()


class Guarded(Records):
    def __getitem__(self, i: int) -> Any:
        with LOCK:
            return self.files["train"].read(1)


def test_locks_are_seen_wherever_the_sample_path_has_them(tmp_path: Path) -> None:
    plain, beside, inside = Records(tmp_path / "a"), Guarded(tmp_path / "b"), Records(tmp_path / "c")
    inside.lock = multiprocessing.RLock()  # type: ignore[attr-defined]
    assert [shared_handles.is_guarded(each) for each in (plain, beside, inside)] == [False, True, True]
    for each in (plain, beside, inside):
        each.files["train"].close()


def test_nothing_of_the_users_is_run(tmp_path: Path) -> None:
    data = Records(tmp_path / "a")
    data.files = {"odd": [Untouchable(), OddList([1]), OddNumber(data.number())], "train": data.files["train"]}
    data.more = {Untouchable(): Untouchable}  # type: ignore[attr-defined]
    with watching() as ran:
        assert shared_handles.held_as(data, data.number()) == "files['train']"
        assert not shared_handles.is_guarded(data)
        assert shared_handles.held_as(Untouchable(), 3) == ""
    assert not ran
    data.files["train"].close()


def test_a_number_is_a_file_only_where_files_are_moved_by_it(tmp_path: Path) -> None:
    class Counting:
        def __init__(self, number: int) -> None:
            self.epoch = number

        def __getitem__(self, i: int) -> Any:
            return self.epoch

    class Moving(Counting):
        def __getitem__(self, i: int) -> Any:
            os.lseek(self.epoch, i, os.SEEK_SET)

    (tmp_path / "a").write_bytes(b"x")
    with (tmp_path / "a").open("rb") as file:
        names = [shared_handles.held_as(kind(file.fileno()), file.fileno()) for kind in (Counting, Moving)]
    assert names == ["", "epoch"]


def test_ours_have_high_numbers(probe: SharedHandles) -> None:
    probe.worker_began()
    assert all(number < at.HIGH for number in followed(probe))


def test_of_many_descriptors_the_first_are_looked_at(tmp_path: Path, probe: SharedHandles) -> None:
    (tmp_path / "a").write_bytes(b"x")
    many = [os.open(tmp_path / "a", os.O_RDONLY) for _ in range(600)]
    probe.worker_began()
    assert len(probe.followed) == shared_handles.MOST_HANDLES
    assert max(shared_handles.open_numbers(at.HIGH)) < at.HIGH
    for number in many:
        os.close(number)
