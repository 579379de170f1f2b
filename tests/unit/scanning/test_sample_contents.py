"""Prints of samples: the same for the same content, others for others, none where a part is unknown."""

from __future__ import annotations

import threading
from collections import UserDict, namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from unstuck.scanning import sample_contents


def prints(samples: list[Any]) -> list[int]:
    return sample_contents.Printer().prints(list(sample_contents.stacked(samples)), len(samples))


@dataclass
class Graph:
    x: torch.Tensor
    edges: list[int]


Pair = namedtuple("Pair", "x y")
ROWS = torch.arange(60.0).reshape(6, 10)
DIFFERENT: dict[str, list[Any]] = {
    "dicts": [{"x": ROWS[k], "t": "a", "n": k % 2} for k in range(6)],
    "texts": [(ROWS[0], text) for text in ("", "a", "b", "ab")],
    "ragged lists": [([1] * k, 0) for k in range(6)],
    "lists that end in -1 and -2": [([1, 2, -1], 0), ([1, 2, -2], 0)],
    "tuples of other lengths": [((1, 2), 0), ((1, 2, 3), 0), ((1,), 0)],
    "16-bit arrays": [(np.full((4, 4), 50_000 + k, dtype="uint16"), 0) for k in range(5)],
    "64-bit unsigned": [(np.array([2**63 + k], dtype="uint64"), 0) for k in range(5)],
    "objects": [(Graph(ROWS[k], [k]), 0) for k in range(6)],
    "named tuples": [Pair(ROWS[k], None) for k in range(6)],
    "keys that not all have": [{"x": 1, "more": 2}, {"x": 1}, {"x": 1, "more": 3}],
    "kinds that change": [(1, 2.0), (1, None), (1, "2.0"), (1, ROWS[0])],
    "shapes": [(torch.zeros(2, 3),), (torch.zeros(3, 2),), (torch.zeros(6),)],
    "types": [(torch.zeros(4, dtype=torch.int32),), (torch.zeros(4),), (torch.zeros(2, dtype=torch.float64),)],
    "half floats": [(ROWS[k].bfloat16(),) for k in range(6)],
    "huge numbers": [(1 << 70, 0), ((1 << 70) + 1, 0)],
    "bytes": [(b"a", 0), (b"b", 0)],
    "what a tokenizer gives": [UserDict(ids=ROWS[k], mask=[1] * k) for k in range(6)],
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_samples_have_different_prints(name: str) -> None:
    found = prints(DIFFERENT[name])
    assert sample_contents.NONE not in found
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("name", DIFFERENT)
def test_the_same_sample_has_the_same_print(name: str) -> None:
    samples = DIFFERENT[name]
    found = prints([*samples, samples[1]])
    assert found[-1] == found[1]


def test_every_value_counts_in_large_sparse_samples() -> None:
    samples = []
    for k in range(300):
        x = torch.zeros(4096)
        x[[2 * k + 1, 4095 - k]] = 1.0
        samples.append((x, 0))
    assert len(set(prints(samples))) == 300


def test_alone_and_among_others_a_tensor_prints_the_same() -> None:
    x = torch.randn(3, 5, 7).transpose(1, 2)
    together = prints([(each, 1) for each in x])
    assert together == [prints([(each, 1)])[0] for each in x]


def test_what_is_not_known_has_no_print() -> None:
    assert prints([(1, threading.Lock()), (1, threading.Lock())]) == [sample_contents.NONE] * 2
    assert prints([(1, (n for n in [1]))]) == [sample_contents.NONE]
    assert prints([(1, np.array([object()]))]) == [sample_contents.NONE]


def test_ragged_lists_of_numbers_are_read() -> None:
    parts = dict(sample_contents.stacked([([1, 2, 3], 0), ([4], 1)]))
    assert [each.tolist() for each in parts["[0]"]] == [[1, 2, 3], [4]]
    assert parts["[1]"].tolist() == [0, 1]


def test_dataclasses_and_what_tokenizers_give_are_read_part_by_part() -> None:
    tokens = sample_contents.stacked([UserDict(ids=ROWS[k], n=k) for k in range(3)])
    assert [(path, tuple(part.shape)) for path, part in tokens] == [("['ids']", (3, 10)), ("['n']", (3,))]
    graphs = sample_contents.stacked([Graph(ROWS[k], [k]) for k in range(3)])
    assert [(path, tuple(part.shape)) for path, part in graphs] == [(".x", (3, 10)), (".edges", (3, 1))]


def test_across_processes_the_prints_do_not_depend_on_the_seed_of_hashes() -> None:
    assert sample_contents.Printer(across=True)._of_anything("a") == 9122208701989307568  # of SHA-1
