"""Which steps are sampled: one in thirty-two on average, wherever in its pass a step is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from unstuck.recorder import flight

STEPS = 8000


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[int]]:
    """The numbers of the sampled steps of a run, without the first ones."""
    before = list(flight.state)
    flight.open_file(str(tmp_path_factory.mktemp("flight")), forked=False)
    numbers = []
    for number in range(1, STEPS + 1):
        if flight.state[flight.FULL] and number > flight.FULL_STEPS:
            numbers.append(number)
        flight.state[flight.STEPS] += 1
        if flight.state[flight.FULL] or flight.sample_due():
            flight.turn()
    yield numbers
    flight.let_go()
    flight.state[:] = before


def test_one_in_thirty_two(sampled: list[int]) -> None:
    assert len(sampled) == pytest.approx(STEPS / 32, rel=0.1)


@pytest.mark.parametrize("length", [2, 4, 8, 16, 32, 33, 48, 64, 100])
def test_the_first_step_of_a_pass_is_met_no_more_often_than_others(sampled: list[int], length: int) -> None:
    first = sum(number % length == 1 for number in sampled)
    assert first <= 2 * len(sampled) / length + 2
