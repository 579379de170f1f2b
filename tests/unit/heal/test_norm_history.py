"""From where on a gradient norm is out of all proportion: numbers alone, no torch."""

from __future__ import annotations

import math
import random

import pytest

from unstuck.heal.norm_history import MIN_STEPS, MIN_TIMES, NormHistory, harmful_times


def steady(steps: int, scatter: float = 0.1, level: float = 1.0) -> list[float]:
    chance = random.Random(0)
    return [level * math.exp(chance.gauss(0, scatter)) for _ in range(steps)]


def test_nothing_is_judged_before_there_is_something_to_compare_with() -> None:
    assert NormHistory(steady(MIN_STEPS - 1)).limit == math.inf
    assert NormHistory(steady(MIN_STEPS)).limit < math.inf


def test_however_steady_the_norms_are_what_is_not_far_beyond_passes() -> None:
    history = NormHistory([1.0] * 200)
    assert history.usual == pytest.approx(1.0)
    assert history.limit == pytest.approx(MIN_TIMES)


def test_the_wider_norms_scatter_the_more_passes() -> None:
    narrow, wide = NormHistory(steady(300, 0.1)), NormHistory(steady(300, 1.5))
    assert wide.limit > 10 * narrow.limit


def test_a_falling_level_does_not_hide_a_spike() -> None:
    """Norms that fall by three orders of magnitude have no scatter for it."""
    history = NormHistory(10 * 0.975**step * noise for step, noise in enumerate(steady(280)))
    assert history.limit == history.highest  # a norm that the first steps had is let pass, one above it is not


def test_single_spikes_change_nothing_and_a_new_level_is_taken_in() -> None:
    history = NormHistory(steady(200))
    before = history.limit
    history.add(1e6)
    assert history.limit == pytest.approx(before, rel=0.3)
    for norm in steady(40, level=1e6):
        history.add(norm)
    assert history.limit > 1e6


@pytest.mark.parametrize("norm", [0.0, math.inf, math.nan, -1.0])
def test_what_is_no_norm_is_left_out(norm: float) -> None:
    history = NormHistory(steady(200))
    before = history.norms
    history.add(norm)
    assert history.norms == before


def test_a_history_is_made_again_from_its_norms() -> None:
    history = NormHistory(steady(1000, 0.7))
    again = NormHistory(history.norms)
    assert again.usual == history.usual
    assert again.limit == history.limit


def test_what_was_usual_before_is_let_pass_after_the_training_has_converged() -> None:
    history = NormHistory([0.5 * 0.95**step for step in range(300)])
    first = NormHistory([0.5 * 0.95**step for step in range(30)])
    assert history.usual < 1e-6
    assert 0.3 < history.limit <= first.limit
    assert NormHistory(history.norms, history.highest).limit == history.limit


def test_what_harms_depends_on_what_the_optimizer_keeps_of_a_gradient() -> None:
    assert harmful_times({"lr": 0.1, "momentum": 0.9}) == MIN_TIMES
    assert harmful_times({"betas": (0.9, 0.999)}) == pytest.approx(89.4, abs=0.1)
    assert harmful_times({"betas": (0.9, 0.9)}) == MIN_TIMES
    assert harmful_times({"betas": None}) == harmful_times({"betas": (0.9, 1.0)}) == MIN_TIMES
    assert NormHistory([1.0] * 200, min_times=90.0).limit == pytest.approx(90.0)
