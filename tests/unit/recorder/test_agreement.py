"""Whether a model's input has anything of its target in it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from unstuck.recorder.probes.data import agreement
from unstuck.recorder.records.data import Agreement


def seen(given: Any, target: torch.Tensor) -> Agreement:
    known = agreement.Agreements()
    known.given((given,), None)
    known.take(target)
    found = known.record()
    assert found is not None
    return found


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


NOISE = torch.randn(256, 3, 4, 4, generator=torch.Generator().manual_seed(1))
CLEAN = torch.randn(256, 3, 4, 4, generator=torch.Generator().manual_seed(2))


def test_noise_that_is_in_the_input_and_noise_that_is_not() -> None:
    assert seen(0.9 * CLEAN + 0.4 * NOISE, NOISE).whole > 20
    apart = seen(0.9 * CLEAN + 0.4 * torch.randn_like(NOISE), NOISE)
    assert max(abs(apart.whole), apart.by_row) < 3
    beside = torch.cat((CLEAN, 0.9 * CLEAN + 0.4 * NOISE), 1)
    assert seen(beside, NOISE).whole > 20, "the last channels"


def test_targets_that_agree_with_some_rows_and_contradict_others() -> None:
    time = torch.rand(256, 1, 1, 1)
    flow = seen((1 - time) * CLEAN + time * NOISE, NOISE - CLEAN)
    assert abs(flow.whole) < 10 < flow.by_row


def test_of_other_shapes_nothing_is_known() -> None:
    known = agreement.Agreements()
    for given, target in ((torch.randn(256, 4), torch.randn(256, 5)), (torch.randn(256), torch.randn(256))):
        known.given(given, None)
        known.take(target)
    known.take(NOISE)
    assert known.record() is None
