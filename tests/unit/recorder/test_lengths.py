"""A length is asked for only where asking changes nothing."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, RandomSampler, Subset, TensorDataset

from unstuck.recorder.lengths import length, loader_length

ASKED: list[str] = []


class Counted:
    def __init__(self, n: int) -> None:
        self.items = list(range(n))

    def __len__(self) -> int:
        return len(self.items) // 2


class Bucketed(Counted):
    def __len__(self) -> int:
        return sum((len(b) + 1) // 2 for b in {"a": self.items}.values())


class Drawing(Counted):
    def __len__(self) -> int:
        ASKED.append("drawn")
        return random.randint(1, 5)


class Building(Counted):
    def __len__(self) -> int:
        return len(list(self.batches()))

    def batches(self) -> list[int]:
        ASKED.append("built")
        return self.items


class Remembering(Counted):
    def __len__(self) -> int:
        self.asked = True
        return 3


class Around:
    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __len__(self) -> int:
        return len(self.inner)


@pytest.mark.parametrize(
    ("thing", "expected"),
    [(Counted(10), 5), (Bucketed(10), 5), (Around(Counted(10)), 5), (torch.zeros(4), 4), ([1], 1)],
)
def test_asks_where_it_is_harmless(thing: Any, expected: int) -> None:
    assert length(thing) == expected


@pytest.mark.parametrize("thing", [Drawing(10), Building(10), Remembering(10), Around(Drawing(4)), object()])
def test_does_not_ask_where_it_might_change_something(thing: Any) -> None:
    ASKED.clear()
    assert length(thing) is None
    assert not ASKED


class Stream(IterableDataset[int]):  # type: ignore[misc]  # torch may be without types
    def __init__(self, n: int) -> None:
        self.n = n

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.n))

    def __len__(self) -> int:
        return self.n


def test_loaders_say_what_torch_would_say() -> None:
    data: Dataset[Any] = TensorDataset(torch.zeros(10, 2))
    for loader in (
        DataLoader(data, batch_size=3),
        DataLoader(data, batch_size=3, drop_last=True, shuffle=True),
        DataLoader(Subset(data, range(7)), batch_size=2),
        DataLoader(data, batch_sampler=BatchSampler(RandomSampler(data), 4, False)),
        DataLoader(data, batch_size=None),
        DataLoader(Stream(10), batch_size=3),
    ):
        assert loader_length(loader) == len(loader)


def test_torch_does_not_remember_having_been_asked() -> None:
    loader = DataLoader(Stream(10), batch_size=3)
    loader_length(loader)
    assert loader._IterableDataset_len_called is None


def test_a_sampler_without_length_has_none() -> None:
    class Endless(IterableDataset[int]):  # type: ignore[misc]  # as above
        def __iter__(self) -> Iterator[int]:
            return iter(int, 1)

    assert loader_length(DataLoader(Endless(), batch_size=3)) is None
