"""A length is worked out, never asked for."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

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


class Plain(Counted):
    """As people write them."""

    most, rows, batch, ratio = 7, 3, 4, 0.5
    limit: int | None = None
    data = torch.zeros(9, 2)
    array = np.zeros((6, 5))

    def __len__(self) -> int:
        raise NotImplementedError

    @property
    def halved(self) -> int:
        """Half of them."""
        half = len(self.items) // 2
        return half if self.limit is None else min(half, self.limit)


def saying(answer: str, tmp_path: Path, base: str = "Plain") -> Any:
    """A class whose length is that expression."""
    path = tmp_path / f"script_{abs(hash(answer))}.py"
    path.write_text(f"import math\nclass Saying({base}):\n    def __len__(self):\n        return {answer}\n")
    space: dict[str, Any] = {"__name__": "script", base: globals()[base]}
    exec(compile(path.read_text(), str(path), "exec"), space)
    return space["Saying"](10)


@pytest.mark.parametrize(
    "answer",
    [
        "len(self.items)", "self.most", "len(self.items) + 1", "max(0, len(self.items) - self.rows)", "self.halved",
        "min(len(self.items), self.most) // self.rows", "math.ceil(len(self.items) / self.batch)", "1000",
        "int(self.ratio * 9)", "-(-len(self.items) // self.batch)", "self.data.shape[0]", "self.data.size(0)",
        "len(self.data)", "self.array.shape[1]", "len(self.array)", "sum([1, 2, self.rows])", "self.__class__.most",
        "self.most if self.limit is None else self.limit", "len([n for n in self.items if n > 4])",
        "sum(len(self.items) for row in range(3) if row > 0)", "len(self.items[1:3])", "len(self.items) and 3",
        "round(len(self.items) * 0.3)", "len(range(0, 7, 2))",
    ],
)  # fmt: skip
def test_says_what_it_would_say_itself(tmp_path: Path, answer: str) -> None:
    thing = saying(answer, tmp_path)
    hard = ("__class__", "[1:3]", "and")
    assert length(thing) == (None if any(part in answer for part in hard) else len(thing))


def test_a_length_that_builds_on_the_one_above(tmp_path: Path) -> None:
    thing = saying("super().__len__() + 1", tmp_path, "Counted")
    assert length(thing) == len(thing) == 6
    assert length(saying("super().__len__() + 1", tmp_path, "Drawing")) is None


def test_what_is_made_from_containers_tensors_and_arrays() -> None:
    class Rows(list):  # type: ignore[type-arg]
        pass

    class Odd(torch.Tensor):  # type: ignore[misc]  # as below
        pass

    assert length(Rows([1, 2])) == 2
    assert length(np.zeros((4, 3)).view(np.recarray)) == 4
    assert length(torch.nn.Parameter(torch.zeros(3))) == 3
    assert length(torch.zeros(2).as_subclass(Odd)) is None
    assert length(torch.zeros(())) is None
    assert length(np.zeros(())) is None


def test_torch_s_own_classes() -> None:
    data: Any = TensorDataset(torch.zeros(10, 2))

    class Mine(TensorDataset):  # type: ignore[misc]  # as below
        pass

    for thing in (
        data,
        Mine(torch.zeros(4)),
        Subset(data, [1, 2]),
        ConcatDataset([data, data]),
        RandomSampler(data),
        RandomSampler(data, replacement=True, num_samples=33),
        SequentialSampler(data),
        SubsetRandomSampler([1, 2, 3]),
        WeightedRandomSampler([0.1] * 4, 9),
        BatchSampler(RandomSampler(data), 3, True),
        DistributedSampler(data, num_replicas=2, rank=0),
        DataLoader(data, batch_size=3),
        torch.nn.ModuleList([torch.nn.ReLU()]),
    ):
        assert length(thing) == len(thing), thing


@pytest.mark.parametrize(
    ("thing", "expected"),
    [(Counted(10), 5), (Bucketed(10), 5), (Around(Counted(10)), 5), (torch.zeros(4), 4), ([1], 1)],
)
def test_is_worked_out_where_it_is_plain(thing: Any, expected: int) -> None:
    assert length(thing) == expected


@pytest.mark.parametrize("thing", [Drawing(10), Building(10), Remembering(10), Around(Drawing(4)), object()])
def test_nothing_is_asked(thing: Any) -> None:
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
