"""One budget for all probes together, and what is kept of it for those that must not be starved."""

from __future__ import annotations

import pytest

from unstuck.recorder import governor
from unstuck.recorder.governor import ADVANCE, KEPT, SHARE, Governor

SECONDS = 1000.0


@pytest.fixture
def budget(monkeypatch: pytest.MonkeyPatch) -> Governor:
    """Of a run that began a thousand seconds ago, with its first step just made."""
    now = iter([1.0])
    monkeypatch.setattr(governor, "monotonic", lambda: next(now, 1.0 + SECONDS))
    made = Governor()
    assert made.allows()
    return made


EARNED = ADVANCE + SHARE * SECONDS


def test_what_is_spent_by_one_is_missing_for_all(budget: Governor) -> None:
    budget.add("data", EARNED * 1.01)
    assert not budget.allows()
    assert not budget.allows("growth")


def test_one_probe_takes_no_more_than_its_portion(budget: Governor) -> None:
    budget.add("data", EARNED * 0.4)
    assert not budget.allows("data")
    assert budget.allows("learning")


@pytest.mark.parametrize("part", sorted(KEPT))
def test_slopes_and_updates_are_watched_though_the_others_spent_it_all(budget: Governor, part: str) -> None:
    assert budget.allows(part)
    budget.add("learning", EARNED * 1.01)
    assert budget.allows(part)
    budget.charge(part, "learning", EARNED * KEPT[part] * 1.01)
    assert not budget.allows(part)


def test_updates_are_compared_though_the_probe_has_spent_all_it_may(
    budget: Governor, monkeypatch: pytest.MonkeyPatch
) -> None:
    from unstuck.recorder.probes.learning.learning_probe import LearningProbe

    monkeypatch.setattr(governor, "governor", budget)
    monkeypatch.setattr(governor, "allows", budget.allows)
    probe = LearningProbe()
    seen: list[int] = []
    monkeypatch.setattr(probe.measured.updates, "before", lambda *_: seen.append(len(seen)))
    budget.add("learning", EARNED * 0.8)
    probe.before_step(None)
    assert seen == [0]
    assert budget.by_probe["updates"] > 0
    budget.add("updates", EARNED * KEPT["updates"])
    probe.before_step(None)
    assert seen == [0]


def test_something_is_kept_once_it_is_asked_for(budget: Governor) -> None:
    budget.add("growth", EARNED * 0.95)
    assert budget.allows("growth")
    assert budget.allows("steep")
    assert not budget.allows("growth")
    budget.add("steep", EARNED * KEPT["steep"] * 0.9)
    assert not budget.allows("growth"), "all is spent but what is kept"


def test_what_is_done_within_another_reading_counts_once_and_what_is_loaded_not_at_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]
    made = Governor()
    monkeypatch.setattr(governor, "thread_time", lambda: clock[0])
    monkeypatch.setattr(governor, "governor", made)
    with governor.Reading() as outer:
        clock[0] += 1
        with governor.Reading() as inner:
            with governor.LeftOut():
                clock[0] += 50
            clock[0] += 2
            inner.spent_by("data")
        with governor.LeftOut():
            clock[0] += 100
        clock[0] += 4
        outer.spent_by("learning")
    with governor.LeftOut():
        clock[0] += 10
    assert (made.by_probe["data"], made.by_probe["learning"], made.spent) == (2, 5, 7)
