"""Models that train in eval mode."""

from __future__ import annotations

import pytest

from tests.unit.rules.learning.ownership import case, said
from unstuck.recorder.records.learning import Mode
from unstuck.rules.learning import eval_mode_while_training


def modes(*seen: tuple[int, bool, int, int], never: int = 0, kinds: tuple[str, ...] = ("Dropout",)) -> list[Mode]:
    return [
        Mode(step=step, training=training, idle=idle, of=of, never_updated=never, kinds=list(kinds))
        for step, training, idle, of in seen
    ]


def test_not_put_back_after_validation() -> None:
    history = modes((2, True, 0, 2), (5, True, 0, 2), (30, False, 2, 2), (60, False, 2, 2), (96, False, 2, 2))
    (finding,) = said(eval_mode_while_training.RULE, case(modes={"model": history}))
    assert finding.severity == "error"
    assert "up to step 5" in finding.evidence[1]


def test_norms_without_statistics_in_a_model_from_scratch() -> None:
    history = modes(*[(step, True, 2, 3) for step in (2, 5, 12)], never=2, kinds=("BatchNorm2d",))
    (finding,) = said(eval_mode_while_training.RULE, case(modes={"model": history}))
    assert finding.title.startswith("The batch norms of `model` are in eval mode and were never updated")
    history[0] = modes((2, True, 2, 3))[0]  # on a GPU it is known a little later
    assert said(eval_mode_while_training.RULE, case(modes={"model": history}))


@pytest.mark.parametrize(
    "history",
    [
        modes(*[(step, True, 2, 3) for step in (2, 5)], never=2),  # too few
        modes(*[(step, True, 3, 3) for step in (2, 5, 12)], never=2),  # one has statistics: a layer was added
        modes((2, True, 0, 3), *[(step, True, 2, 3) for step in (5, 12, 30)], never=2),
        modes(*[(step, True, 2, 2) for step in (2, 5, 12, 30)], kinds=("BatchNorm2d",)),  # norms held still
        modes(*[(step, False, 2, 2) for step in (2, 5, 12, 30)], kinds=("BatchNorm2d",)),  # of a trained model
        modes((2, False, 2, 2), (5, True, 0, 2), (12, False, 2, 2), (30, True, 0, 2)),  # in turns
        modes((2, True, 0, 2), (5, True, 0, 2), (12, False, 2, 2)),  # once
    ],
)
def test_eval_mode_on_purpose(history: list[Mode]) -> None:
    assert not said(eval_mode_while_training.RULE, case(modes={"model": history}))
