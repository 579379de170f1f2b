"""Columns of codes: what they say of the target, as categories and as numbers."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from unstuck.recorder.probes.data import codes
from unstuck.recorder.records.data import Link

ROWS = 1500
DEMAND = torch.tensor([2, 1, 1, 1, 2, 5, 18, 45, 80, 40, 25, 28, 32, 32, 31, 36, 55, 90, 82, 55, 38, 30, 22, 10.0])


@pytest.fixture
def g() -> torch.Generator:
    return torch.Generator().manual_seed(4)


def link(values: Any, target: Any, labelled: bool = False) -> Link | None:
    table = values.double().reshape(ROWS, -1, 1)
    return codes.links(table, target.double().reshape(-1, 1), labelled).get(0)


def looks_like_codes(values: Any, target: Any, labelled: bool = False) -> bool:
    found = link(values, target, labelled)
    return found is not None and found.smooth is not None and found.smooth < 3 and (found.one or 0) < 0.6


def test_associations_lose_what_chance_gives(g: torch.Generator) -> None:
    code, label = torch.randint(0, 12, (ROWS,), generator=g), torch.randint(0, 3, (ROWS,), generator=g)
    for target, labelled in ((label, True), (torch.randn(ROWS, generator=g), False)):
        found = link(code, target, labelled)
        assert found is not None
        assert max(found.as_category, found.as_number) < 0.1
    found = link(code, code % 2, True)
    assert found is not None
    assert found.as_category == pytest.approx(1.0, abs=0.01)
    assert found.as_number < 0.4
    found = link(code, 3.0 * code - 1)
    assert found is not None
    assert found.as_number == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("kinds", [20, 40])
def test_codes_are_known_again_whatever_scale_they_were_given(g: torch.Generator, kinds: int) -> None:
    means, noise = torch.randn(kinds, generator=g), torch.randn(ROWS, generator=g)
    kind = torch.randint(0, kinds, (ROWS, 6), generator=g)
    one, several = kind[:, 0], means[kind].sum(1)
    for scaled in (kind, kind / kinds, (kind - kind.float().mean()) / kind.float().std()):
        assert looks_like_codes(scaled[:, 0], means[one] + noise)
        assert looks_like_codes(scaled[:, 0], means[one] > 0, labelled=True)
        assert looks_like_codes(scaled, several + noise)
    lengths = torch.randint(3, 7, (ROWS, 1), generator=g)
    there = torch.arange(6) < lengths
    filled = torch.where(there, (kind + 1) / kinds - 0.3, 0.0)
    assert looks_like_codes(filled, (means[kind] * there).sum(1) + noise), "places that a sample has not got"


def test_quantities_are_none(g: torch.Generator) -> None:
    noise = torch.randn(ROWS, generator=g)
    hour, age = torch.randint(0, 24, (ROWS,), generator=g), torch.randint(18, 80, (ROWS,), generator=g)
    count, pixel = torch.poisson(torch.full((ROWS,), 6.0), generator=g), torch.randint(0, 256, (ROWS,), generator=g)
    rating, several = torch.randint(1, 21, (ROWS,), generator=g), torch.randint(0, 16, (ROWS, 10), generator=g)
    cases = {
        "hours with two peaks": (hour / 24, DEMAND[hour] + 15 * noise, False),
        "an age from which on": ((age - 49) / 18.0, (age > 45) + 0.3 * noise, False),
        "an age between two": (age / 100, (age > 40) & (age < 46), True),
        "none at all, or some": (count, (count == 0) + 0.1 * noise, False),
        "ratings that are the classes": (rating / 20, (rating - 1) // 2, True),
        "pixels": (pixel / 255, pixel > 100, True),
        "counts over time": (several / 11, (several > 10).sum(1) + noise, False),
        "the largest of them": (several / 11, several.amax(1), False),
        "nothing in it": (age / 100, noise, False),
    }
    for what, (values, target, labelled) in cases.items():
        assert not looks_like_codes(values, target, labelled), what


def test_what_is_not_at_even_distances_holds_no_codes(g: torch.Generator) -> None:
    means, kind = torch.randn(30, generator=g), torch.randint(0, 30, (ROWS,), generator=g)
    assert link(torch.rand(30, generator=g)[kind], means[kind]) is None
    assert link(kind / 30 * (kind % 10 == 0), means[kind]) is None, "few of them"
    assert link(torch.randn(ROWS, generator=g), means[kind]) is None
    assert link((kind / 30).where(kind > 0, torch.nan), means[kind]) is not None
    assert codes.links(torch.zeros(0, 1, 1).double(), torch.zeros(0, 1).double(), False) == {}
