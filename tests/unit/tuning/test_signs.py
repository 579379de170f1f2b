"""What a data set does while it is measured, and what its script does to it, seen for real."""

from __future__ import annotations

import os
import sqlite3
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

from unstuck.takeover import import_safe
from unstuck.tuning import worker_settings
from unstuck.tuning.dataset_signs import Signs, changed_between_passes


class Rows(Dataset):  # type: ignore[misc]
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> Any:
        return torch.zeros(2)


class Opened(Rows):
    def __init__(self, path: Path) -> None:
        self.file = path.open("rb")

    def __getitem__(self, index: int) -> Any:
        self.file.seek(1000 * index)
        return torch.zeros(len(self.file.read(4)))


RECORDS: list[Any] = []


class Global(Rows):
    def __getitem__(self, index: int) -> Any:
        RECORDS[0].seek(1000 * index)
        return torch.zeros(len(RECORDS[0].read(4)))


class OpenedInEach(Opened):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.path, self.owner = path, os.getpid()

    def __getitem__(self, index: int) -> Any:
        if os.getpid() != self.owner:
            self.file, self.owner = self.path.open("rb"), os.getpid()
        return super().__getitem__(index)


class Asking(Opened):
    def __getitem__(self, index: int) -> Any:
        assert get_worker_info() is None
        return super().__getitem__(index)


class Lines(IterableDataset):  # type: ignore[misc]
    """Each pass opens the file for itself; `number` may be that of the descriptor."""

    def __init__(self, path: Path) -> None:
        self.path, self.number = path, os.dup(2)
        os.close(self.number)

    def __iter__(self) -> Any:
        with self.path.open("rb", buffering=0) as file:
            while file.read(1000):
                yield torch.zeros(2)


class Tables(Rows):
    def __init__(self, path: Path) -> None:
        self.base = sqlite3.connect(path)


def seen(loader: DataLoader) -> Signs:
    """After one pass in this process."""
    signs = Signs(loader, worker_settings.of_loader(loader))
    for _ in loader:
        pass
    return signs


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "records.bin"
    path.write_bytes(bytes(64_000))
    return path


@pytest.mark.parametrize(("kind", "shares"), [(Opened, True), (OpenedInEach, False), (Asking, False)])
def test_a_file_that_is_read_through(kind: Any, shares: bool, file: Path) -> None:
    rows = kind(file)
    said = seen(DataLoader(rows, batch_size=8)).why_not()
    rows.file.close()
    assert bool(said) is shares
    assert "(file)" in said or not shares


def test_a_stream_that_opens_its_file_in_each_pass(file: Path) -> None:
    loader = DataLoader(Lines(file), batch_size=8)
    signs = Signs(loader, worker_settings.of_loader(loader))
    batches = iter(loader)
    for _ in range(3):
        next(batches)
        assert signs.why_not() == ""
    del batches


def test_a_file_that_the_module_has_open(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with file.open("rb") as opened:
        monkeypatch.setitem(globals(), "RECORDS", [opened])
        assert "(RECORDS)" in seen(DataLoader(Global(), batch_size=8)).why_not()


def test_a_file_that_is_only_held(file: Path) -> None:
    with file.open("rb"):
        assert seen(DataLoader(Rows(), batch_size=8)).why_not() == ""


def test_workers_that_share_a_file_already(file: Path) -> None:
    rows = Opened(file)
    said = seen(DataLoader(rows, batch_size=8, num_workers=1, multiprocessing_context="fork")).why_not()
    rows.file.close()
    assert "move it for each other" in said


def test_a_data_base_does_not_outlive_a_fork(tmp_path: Path) -> None:
    tables = Tables(tmp_path / "rows.db")
    assert "(base)" in seen(DataLoader(tables, batch_size=8)).why_not()
    tables.base.close()


class Cached(Rows):
    def __init__(self) -> None:
        self.cache: dict[int, Any] = {}

    def __getitem__(self, index: int) -> Any:
        return self.cache.setdefault(index, torch.zeros(2))


class Remembered(Rows):
    @lru_cache  # noqa: B019
    def __getitem__(self, index: int) -> Any:
        return torch.zeros(2)


@pytest.mark.parametrize(("kind", "where"), [(Rows, ""), (Cached, "cache"), (Remembered, "__getitem__")])
def test_samples_that_are_kept(kind: Any, where: str) -> None:
    assert seen(DataLoader(kind(), batch_size=8)).keeps() == where


# --- what the script does ------------------------------------------------------------------------------------

LEVELS = """
class Levels:
    def __init__(self):
        self.level = self.seen = 0
    def __getitem__(self, index):
        self.seen += self.level
        return index
    def raise_to(self, level):
        self.level = level

rows = Levels()
"""


def loaded(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The script, run as the main module."""
    path = folder / "train.py"
    path.write_text(text)
    main = type(sys)("__main__")
    main.__file__ = str(path)
    monkeypatch.setitem(sys.modules, "__main__", main)
    exec(compile(text, path, "exec"), vars(main))
    return vars(main)


@pytest.mark.parametrize(
    ("then", "said"),
    [
        ("rows.level = 3", ""),
        ("for epoch in range(3): rows.level = epoch", "level (train.py:13)"),
        ("for epoch in range(3): rows.raise_to(epoch)", "level (train.py:9)"),
        ("for epoch in range(3): rows[epoch]", ""),
        ("def train(): rows.level += 1\nfor epoch in range(3): train()", "level (train.py:13)"),
    ],
)
def test_a_data_set_that_is_changed_between_passes(
    then: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = loaded(LEVELS + "\n" + then, tmp_path, monkeypatch)["rows"]
    assert changed_between_passes(rows) == said


@pytest.mark.parametrize(
    ("text", "guarded"),
    [
        ("look()", False),
        ("name = __name__\nlook()", False),
        ("if __name__ == '__main__':\n    look()", True),
        ("def main():\n    look()\nif '__main__' == __name__:\n    main()", True),
        ("if __name__ == '__main__':\n    pass\nlook()", False),
        ("if __name__ == '__main__':\n    pass\nelse:\n    pass\nlook()", False),
    ],
)
def test_a_script_that_can_be_imported(
    text: str, guarded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = loaded("seen = []\ndef look(): pass\n", tmp_path, monkeypatch)
    path = tmp_path / "train.py"
    path.write_text(text)
    space.update(look=lambda: space["seen"].append((import_safe.is_guarded(), import_safe.runs_again("spawn"))))
    exec(compile(text, path, "exec"), space)
    assert space["seen"] == [(guarded, not guarded)]
    assert not import_safe.runs_again("fork")
