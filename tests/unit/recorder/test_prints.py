"""Fingerprints: the same bytes give the same print, others do not, and what cannot be read gives none."""

from __future__ import annotations

from collections import OrderedDict, UserDict, namedtuple

import pytest
import torch

from unstuck.recorder.probes.data import fingerprints
from unstuck.recorder.probes.data.fingerprints import rows as rows_of


def test_same_contents_same_prints() -> None:
    x, y = torch.randn(20, 3, 8, 8), torch.arange(20)
    assert rows_of((x, y)) == rows_of([x.clone(), y.clone()]) == rows_of({"x": x, "y": y})
    assert len(rows_of((x, y)) or ()) == fingerprints.MOST_ROWS


def test_one_sample_changed_is_seen() -> None:
    x = torch.randn(4, 3, 64, 64)
    other = x.clone()
    other[2] += 1e-3
    before, after = rows_of(x), rows_of(other)
    assert before is not None
    assert after is not None
    assert [a == b for a, b in zip(before, after, strict=True)] == [True, True, False, True]


def test_named_tuples_and_nesting() -> None:
    Pair = namedtuple("Pair", "x y")  # as scripts write it
    x, y = torch.randn(3, 5), torch.arange(3)
    assert rows_of(Pair(x, {"y": [y]})) == rows_of((x, y))


def test_dict_subclasses_are_not_passed_over() -> None:
    x, y = torch.randn(3, 5), torch.arange(3)
    assert rows_of((x, y)) == rows_of(OrderedDict(x=x, y=y)) == rows_of(UserDict(x=x, y=y))


def test_a_batch_of_many_things_is_looked_at_in_part() -> None:
    x = torch.randn(3, 5)
    assert rows_of([x] * 100_000) == rows_of([x] * fingerprints.MOST_LEAVES)
    assert rows_of([list(range(200_000)), x]) == rows_of(x)


def test_rows_of_one_value_have_no_print() -> None:
    assert rows_of(torch.zeros(5, 7)) == []


@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_what_cannot_be_read_has_none() -> None:
    assert rows_of(torch.randn(4, 6).t()) is None
    assert rows_of((torch.randn(4, 2), torch.randn(3, 2))) is None
    assert rows_of(torch.tensor(3.0)) is None
    assert rows_of("text") is None
    assert rows_of(torch.nn.Parameter(torch.randn(3, 3))) is None
    assert rows_of(torch.eye(3).to_sparse_csr()) is None
    assert rows_of(torch.eye(3).to_sparse()) is None


def test_reads_no_more_than_the_tensor() -> None:
    for shape in ((1, 1), (3, 2049), (5, 7, 11), (2, 100_003)):
        whole = torch.randint(0, 255, shape, dtype=torch.uint8)
        assert rows_of(whole) is not None
