"""Worlds of 8 to 1,000 ranks: the same answer, a page of one screen, and nothing that grows with the square."""

from __future__ import annotations

import pytest

from tests.rank_worlds import world_of_many
from tests.unit.rules.record_cases import saved_case
from unstuck.report import terminal
from unstuck.report.screen import Screen
from unstuck.rules import rank_words
from unstuck.rules.diagnose import diagnose
from unstuck.rules.rank_sample import MAX_KEPT, thinned

ONE_SCREEN = 60  # lines
NAMES = ("ranks-metric-of-the-first", "ranks-reduce-or-broadcast", "ranks-shards-of-words")


@pytest.mark.parametrize("size", [8, 64, 1000])
@pytest.mark.parametrize("name", NAMES)
def test_the_answer_stays_and_fits_a_screen(name: str, size: int) -> None:
    small = diagnose(saved_case(name)).findings[0]
    case = world_of_many(saved_case(name), size)
    diagnosis = diagnose(case)
    assert diagnosis.probes_off == ()
    assert diagnosis.findings[0].rule == small.rule
    assert len(terminal.render(case, diagnosis, Screen(), live=False).splitlines()) <= ONE_SCREEN


def test_rules_about_one_process_get_a_few_ranks_of_many() -> None:
    case = world_of_many(saved_case("ranks-metric-of-the-first"), 1000)
    kept = [flight for flight in thinned(case).flights if flight.rank is not None]
    assert len(kept) <= MAX_KEPT
    assert 999 in {flight.rank for flight in kept}  # the one that is elsewhere


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([3], "rank 3"),
        ([0, 1], "ranks 0–1"),
        ([0, 2], "ranks 0 and 2"),
        ([0, 1, 2, 5, 7], "ranks 0–2, 5 and 7"),
        (list(range(0, 40, 2)), "ranks 0, 2, 4, 6 and 16 more"),
        (list(range(9999)), "ranks 0–9998"),
    ],
)
def test_ranks_in_words(numbers: list[int], words: str) -> None:
    assert rank_words.ranks(numbers) == words
