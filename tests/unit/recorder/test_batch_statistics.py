"""What is said of a loader's data, and that nothing of the user's is run for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, Subset

from unstuck.observer import journals
from unstuck.recorder import flight, journal, loading
from unstuck.recorder import layout as at
from unstuck.recorder.probes.data.batch_statistics import MOST_BATCHES, MOST_SOURCES, BatchStatistics
from unstuck.recorder.records.data import DataSeen

ran: list[str] = []
"""What of the user's was run."""


class Rows(Dataset):  # type: ignore[misc]  # torch says nothing of its type
    def __len__(self) -> int:
        ran.append("len")
        return 40

    def __getitem__(self, index: int) -> Any:
        return torch.full((3,), float(index)), index % 2

    def __getattr__(self, name: str) -> Any:
        ran.append(name)
        raise AttributeError(name)


def looked_at(probe: BatchStatistics, loader: Any) -> loading.Loading:
    known, _ = loading.Loadings().of(loader, ("train.py", 3, "main"))
    iterator = iter(loader)
    for batch in iterator:
        ran.clear()  # torch itself asks for things
        probe.batch_looked_at(known, iterator, batch)
        assert ran == []
    return known


def test_the_whole_is_written_anew_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    probe = BatchStatistics()
    path = str(tmp_path / "7-8")
    monkeypatch.setattr(journal._journal, "path", path + at.RECORDS)
    loader = DataLoader(Subset(Rows(), range(40)), batch_size=10)
    known = looked_at(probe, loader)
    probe.last()
    assert not Path(path + at.DATA_STATS).exists(), "no step was made on it"
    known.trained = 4
    for _ in range(2):
        probe.last()
    (record,) = journals.parse(Path(path + at.DATA_STATS).read_bytes())
    assert isinstance(record, DataSeen)
    (told,) = record.loaders
    assert (told.trains, told.rows, told.batches) == (True, 40, 4)
    assert (told.dataset, told.sampler) == ("Rows", "SequentialSampler")
    assert told.dataset_site is not None
    assert told.dataset_site[2].endswith("__getitem__")  # with its class from Python 3.11 on
    assert (told.own_batches, told.own_order) == (False, False)
    assert [part.role for part in told.parts] == ["features", "target"]


def test_a_step_between_two_batches_is_training(monkeypatch: pytest.MonkeyPatch) -> None:
    probe = BatchStatistics()
    monkeypatch.setattr(flight, "steps", lambda: 5)
    looked_at(probe, DataLoader(Rows(), batch_size=10))
    assert probe.sources[0].trains


def test_there_is_an_end_to_what_is_kept() -> None:
    probe, loadings = BatchStatistics(), loading.Loadings()
    loaders = [DataLoader(Rows(), batch_size=20) for _ in range(MOST_SOURCES + 2)]
    for loader in loaders:
        known, _ = loadings.of(loader, None)
        iterator = iter(loader)
        probe.batch_looked_at(known, iterator, next(iterator))
    assert len(probe.sources) == MOST_SOURCES
    first = probe.sources[0]
    first.gathered.batches = MOST_BATCHES
    known, iterator = loadings.of(loaders[0], None)[0], iter(loaders[0])
    probe.batch_looked_at(known, iterator, next(iterator))
    assert first.gathered.batches == MOST_BATCHES
    probe.forget()
    assert probe.sources == {}
