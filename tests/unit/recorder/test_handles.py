"""Open files whose offset moves while this process rests; how the data set names them, and what guards them."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from unstuck.recorder import attempts, facts
from unstuck.recorder import layout as at
from unstuck.recorder.probes.data import handle_names, shared_handles

TOLD = list[dict[str, Any]]


@pytest.fixture(autouse=True)
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[TOLD]:
    said: TOLD = []
    monkeypatch.setattr(facts, "tell", lambda *about: said.append(about[1]))
    monkeypatch.setattr(attempts, "locks_files", False)
    yield said
    shared_handles.followed.clear()


class Records:
    def __init__(self, path: Path, mode: str = "rb") -> None:
        path.write_bytes(bytes(100))
        self.files: dict[str, Any] = {"train": open(path, mode, buffering=0)}  # noqa: SIM115  # as data sets do

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


def followed() -> list[int]:
    return [each.number for each in shared_handles.followed]


def test_what_moves_while_it_rests_is_told_ever_more_rarely(tmp_path: Path, told: TOLD) -> None:
    data = Records(tmp_path / "a.bin")
    shared_handles.follow()
    for turn in range(16):
        shared_handles.works(Fetcher(data))
        data.files["train"].seek(0)
        shared_handles.rests()
        os.lseek(data.number(), 10 + turn, os.SEEK_SET)
    assert [said["times"] for said in told] == [1, 2, 4, 8]
    assert told[0]["seen"] == [[0, 10]]
    assert told[0]["attribute"] == "files['train']"
    assert told[0]["guarded"] is False
    data.files["train"].close()


def test_between_two_passes_anybody_may_read(tmp_path: Path, told: TOLD) -> None:
    data = Records(tmp_path / "a.bin")
    shared_handles.follow()
    for turn in range(4):
        before = dict(Fetcher.known)
        Fetcher.known.clear()
        shared_handles.works(Fetcher(data))
        before.clear()
        shared_handles.rests()
        os.lseek(data.number(), 10 + turn, os.SEEK_SET)
    assert not told
    data.files["train"].close()


def test_what_moves_while_it_works_is_its_own(tmp_path: Path, told: TOLD) -> None:
    data = Records(tmp_path / "a.bin")
    shared_handles.follow()
    for _ in range(4):
        shared_handles.works(Fetcher(data))
        data.files["train"].seek(0)
        data.files["train"].read(50)
        shared_handles.rests()
    assert not told
    assert shared_handles._reads == 1, "and it was seen to read"
    data.files["train"].close()


@pytest.mark.parametrize("mode", ["ab", "a+b", "wb"])
def test_logs_are_not_followed(tmp_path: Path, mode: str) -> None:
    data = Records(tmp_path / "a.bin", mode)
    data.files["train"].write(b"x")
    shared_handles.follow()
    assert data.number() not in followed()
    data.files["train"].close()


def test_what_is_written_is_not_read(tmp_path: Path, told: TOLD) -> None:
    data = Records(tmp_path / "a.bin", "r+b")
    shared_handles.follow()
    assert data.number() in followed()
    for _ in range(3):
        shared_handles.works(Fetcher(data))
        shared_handles.rests()
        time.sleep(0.02)
        data.files["train"].write(b"x")
    shared_handles.works(Fetcher(data))
    assert not told
    data.files["train"].close()


def test_a_number_that_is_another_files_by_now(tmp_path: Path, told: TOLD) -> None:
    data = Records(tmp_path / "a.bin")
    number = data.number()
    shared_handles.follow()
    shared_handles.works(Fetcher(data))
    shared_handles.rests()
    data.files["train"].close()
    shared_handles.works(Fetcher(data))
    (tmp_path / "b.bin").write_bytes(bytes(50))
    with open(tmp_path / "b.bin", "rb") as other:
        assert other.fileno() == number
        shared_handles.rests()
        other.seek(5)
        shared_handles.works(Fetcher(data))
    assert not told


LOCK = multiprocessing.Lock()


class Guarded(Records):
    def __getitem__(self, i: int) -> Any:
        with LOCK:
            return self.files["train"].read(1)


def test_locks_are_seen_wherever_the_sample_path_has_them(tmp_path: Path) -> None:
    plain, beside, inside = Records(tmp_path / "a"), Guarded(tmp_path / "b"), Records(tmp_path / "c")
    inside.lock = multiprocessing.RLock()  # type: ignore[attr-defined]
    assert [handle_names.about(each, 3)["guarded"] for each in (plain, beside, inside)] == [False, True, True]
    for each in (plain, beside, inside):
        each.files["train"].close()


def test_ours_have_high_numbers() -> None:
    shared_handles.follow()
    assert all(number < at.HIGH for number in followed())
