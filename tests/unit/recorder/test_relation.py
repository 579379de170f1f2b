"""Whether inputs say anything about their targets."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from unstuck.recorder.probes.data.relation import relation

ROWS = 600


def made(classes: int) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(classes)
    inputs = torch.randn(ROWS, 8, generator=generator, dtype=torch.float64)
    score = inputs[:, 0] + 0.5 * inputs[:, 1] * inputs[:, 2]
    if classes:
        score = score.argsort().argsort() * classes // ROWS  # as many of each
    return inputs, score.double().unsqueeze(1)


def found_in(inputs: Any, targets: Any, classes: int, total: int | None = ROWS) -> Any:
    found = relation(inputs, targets, torch.arange(len(inputs)), classes > 0, total)
    assert found is not None
    return found


@pytest.mark.parametrize("classes", [0, 2, 5])
def test_related_and_unrelated(classes: int) -> None:
    inputs, targets = made(classes)
    assert found_in(inputs, targets, classes).by_mean > 5
    shuffled = targets[torch.randperm(ROWS, generator=torch.Generator().manual_seed(1))]
    found = found_in(inputs, shuffled, classes)
    assert max(found.by_mean, found.by_neighbour, found.by_mean_paired) < 4


def test_a_relation_that_means_do_not_show() -> None:
    inputs, _ = made(0)
    found = found_in(inputs[:, :2], (inputs[:, 0] * inputs[:, 1] > 0).double().unsqueeze(1), 2)
    assert found.by_mean < 3
    assert found.by_neighbour > 10


@pytest.mark.parametrize("name", ["next", "previous", "reversed", "as text", "text as numbers"])
def test_another_order_of_the_targets(name: str) -> None:
    inputs, targets = made(0)
    by_text = sorted(range(ROWS), key=str)
    inputs, targets = {
        "next": (inputs, targets.roll(1, 0)),
        "previous": (inputs, targets.roll(-1, 0)),
        "reversed": (inputs, targets.flip(0)),
        "as text": (inputs[by_text], targets),
        "text as numbers": (inputs, targets[by_text]),
    }[name]
    found = found_in(inputs, targets, 0)
    assert (found.paired, found.by_mean_paired > 20) == (name, True)
    assert found_in(inputs[::2], targets[::2], 0, total=None).paired is None


def test_a_sample_that_was_kept_twice_counts_once() -> None:
    inputs, targets = made(0)
    shuffled = targets[torch.randperm(ROWS, generator=torch.Generator().manual_seed(1))]
    found = found_in(inputs.repeat(3, 1), shuffled.repeat(3, 1), 0, total=None)
    assert found.rows == ROWS
    assert max(found.by_mean, found.by_neighbour) < 4


def test_too_few_rows_prove_nothing() -> None:
    inputs, targets = made(0)
    assert relation(inputs[:150], targets[:150], torch.arange(150), False, 150) is None
    wide = torch.randn(300, 500, dtype=torch.float64)
    assert relation(wide, targets[:300], torch.arange(300), False, None) is not None
    many = torch.randint(0, 19, (300, 1)).double()
    assert relation(wide, many, torch.arange(300), True, None) is None


def test_missing_values_and_constants_are_left_out() -> None:
    inputs, targets = made(0)
    inputs[:, 7] = 1.0
    inputs[3, 0] = float("nan")
    assert found_in(inputs, targets, 0).rows == ROWS - 1
    assert relation(inputs, torch.ones(ROWS, 1).double(), torch.arange(ROWS), False, None) is None


def test_one_row_shows_nothing() -> None:
    inputs, targets = made(0)
    assert relation(inputs[:1], targets[:1], torch.arange(1), False, None) is None
