"""The one walk over a batch: what it sees, that it runs nothing of the user's, and that it is bounded."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, UserDict, namedtuple
from time import process_time
from typing import Any

import numpy
import pytest
import torch

from unstuck.recorder import tensors

ONE = torch.ones(2)
Pair = namedtuple("Pair", "x y")
asked: list[type] = []


class Encoding(UserDict):  # type: ignore[type-arg]
    """As tokenizers give it."""


class Harmful(UserDict):  # type: ignore[type-arg]
    """Whatever of it is run would be noticed."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(name)

    def __len__(self) -> int:
        raise AssertionError("len")

    def __iter__(self) -> Any:
        raise AssertionError("iter")

    @classmethod
    def __subclasshook__(cls, other: type) -> Any:
        asked.append(other)  # any `isinstance` with a class above may come here
        return NotImplemented


class Loud(list):  # type: ignore[type-arg]
    def __len__(self) -> int:
        raise AssertionError("len")

    def __iter__(self) -> Any:
        raise AssertionError("iter")

    def __bool__(self) -> bool:
        raise AssertionError("bool")

    def __getitem__(self, place: Any) -> Any:
        raise AssertionError("item")


class Output(OrderedDict):  # type: ignore[type-arg]
    pass


@dataclasses.dataclass
class Batch:
    images: Any
    labels: Any
    note: str = ""


class Meta(type):
    def __getattribute__(cls, name: str) -> Any:
        raise AssertionError(name)

    def __eq__(cls, other: object) -> bool:
        raise AssertionError("==")

    def __hash__(cls) -> int:
        raise AssertionError("hash")


class Strange(metaclass=Meta):
    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)


def paths(batch: Any) -> list[str]:
    return [path for path, _ in tensors.parts(batch)]


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        (ONE, [""]),
        ((ONE, ONE), ["[0]", "[1]"]),
        (Pair(ONE, {"a": ONE}), [".x", ".y['a']"]),
        ({"image": ONE, 3: ONE, (1, 2): ONE}, ["['image']", "[3]", "[key 2]"]),
        (Output(image=ONE), ["['image']"]),
        (Encoding({"input_ids": ONE, "labels": ONE}), ["['input_ids']", "['labels']"]),
        (Batch(ONE, [ONE]), [".images", ".labels[0]"]),
        ((ONE, ["a", "b"]), ["[0]", "[1]"]),
        ((ONE, ("a",) * 500), ["[0]", "[1]"]),
        ((ONE, ["a", 1]), ["[0]"]),
        (torch.max(torch.ones(2, 2), 0), ["[0]", "[1]"]),
        (torch.nn.utils.rnn.pack_sequence([ONE]), [".data", ".batch_sizes"]),
        ([ONE] * 17, []),
        (None, []),
        (torch.nn.Parameter(ONE), []),
    ],
)
def test_parts(batch: Any, expected: list[str]) -> None:
    assert paths(batch) == expected


def test_nothing_of_the_users_is_run() -> None:
    inner = Harmful.__new__(Harmful)
    object.__setattr__(inner, "data", {"x": ONE})
    loud = Loud()
    list.append(loud, ONE)
    batch = (inner, loud, Strange(), Strange, [Strange()])
    asked.clear()
    found, size = paths(batch), tensors.total_bytes(batch)
    assert asked == []
    assert (found, size) == (["[0]['x']", "[1][0]"], 16)


def test_bytes_are_of_all_that_lies_in_a_batch() -> None:
    array: Any = numpy.zeros(4, dtype=numpy.float64)
    assert tensors.total_bytes([(ONE, 1), (ONE, 2)]) == 16
    assert tensors.total_bytes({"a": ONE, "b": array, (1,): [Encoding({"x": ONE})]}) == 48
    assert tensors.total_bytes([(torch.ones(3), array)] * 512) == 512 * 44
    assert tensors.total_bytes([{f"k{number}": ONE for number in range(16)}] * 300) == 300 * 16 * 8
    assert tensors.total_bytes([ONE] * 1_000_000) == 8_000_000


def test_long_lists_begin_and_places_are_known() -> None:
    assert len(list(tensors.plain_tensors([ONE] * 64))) == 16
    walk = tensors.Walk(samples=3)
    held = [(ONE, 0), (ONE, 1), (ONE, 2)]
    found = [(leaf.path, leaf.place) for leaf in walk.leaves({"x": held}) if leaf.value is ONE]
    assert found == [("['x'][0][0]", 0), ("['x'][1][0]", 1), ("['x'][2][0]", 2)]
    assert {id(held), id(ONE), id(held[1])} <= walk.seen


def nested(depth: int) -> Any:
    batch: Any = ONE
    for _ in range(depth):
        batch = [batch]
    return batch


def wide(depth: int) -> Any:
    return [ONE, object()] if not depth else [wide(depth - 1) for _ in range(12)]


cyclic: list[Any] = [ONE]
cyclic.extend([cyclic] * 8)
HUGE = {
    "ints in lists": [[[number] * 2000 for number in range(10)] for _ in range(10)],
    "ints in short lists": [[[1] * 16 for _ in range(16)] for _ in range(800)],
    "tensors": [ONE] * 1_000_000,
    "texts": ["a"] * 1_000_000,
    "texts in a tuple": ("a",) * 1_000_000,
    "keys": dict.fromkeys(range(1_000_000), ONE),
    "a long key": {"a" * 10_000_000: ONE},
    "in a UserDict": Encoding(dict.fromkeys(range(100_000), ONE)),
    "deep": nested(1000),
    "wide": wide(4),
    "cyclic": cyclic,
}


@pytest.mark.parametrize("name", HUGE)
def test_the_walk_is_bounded(name: str) -> None:
    for long in ("first", "spread", "none"):
        walk = tensors.Walk(long, deep=6)
        leaves = list(walk.leaves(HUGE[name]))
        assert len(leaves) <= tensors.NODES
        assert len(walk.seen) <= tensors.NODES
        assert all(len(leaf.path) < 1000 for leaf in leaves)


def test_a_huge_batch_costs_no_more_than_a_common_one() -> None:
    def cost(batch: Any) -> float:
        def once() -> float:
            began = process_time()
            for _ in range(10):
                list(tensors.parts(batch))
                tensors.total_bytes(batch)
            return process_time() - began

        return min(once() for _ in range(5))

    common = cost({f"k{number}": [ONE] * 12 for number in range(16)})  # about as many things as a walk looks at
    for name, batch in HUGE.items():
        assert cost(batch) < 5 * common, name
