"""When a run that died or hung is started again, and when not."""

from __future__ import annotations

from unstuck.supervise import Options
from unstuck.supervise.restart import LONGEST_PAUSE_SECONDS, Ending, Restarts


def death(step: int, cause: str = "sample-raises at data.py:3, sample 7") -> Ending:
    return Ending("death", cause, step)


def test_as_often_as_allowed_each_time_later() -> None:
    restarts = Restarts(Options(restart=3))
    pauses = [restarts.verdict(death(step))[0] for step in (10, 20, 30)]
    assert pauses == [1.0, 2.0, 4.0]
    assert restarts.verdict(death(40)) == (
        None,
        "not restarted: all 3 restarts are used up (sample-raises at data.py:3, sample 7, after 40 steps)",
    )


def test_a_pause_has_an_end() -> None:
    restarts = Restarts(Options(restart=20))
    assert [restarts.verdict(death(step))[0] for step in range(20)][-1] == LONGEST_PAUSE_SECONDS


def test_the_same_cause_at_the_same_step_is_no_accident() -> None:
    restarts = Restarts(Options(restart=9))
    assert restarts.verdict(death(10))[0] is not None
    assert restarts.verdict(death(10, "out-of-memory-kill"))[0] is not None
    assert restarts.verdict(death(12))[0] is not None
    pause, why = restarts.verdict(death(10))
    assert pause is None
    assert "for the second time at the same step" in why


def test_only_after_what_was_chosen() -> None:
    hang = Ending("hang", "sample-spins at data.py:3", 4)
    assert Restarts(Options(restart=1)).verdict(hang) == (None, "not restarted after a hang (--restart-on death)")
    assert Restarts(Options(restart=1, restart_on="hang")).verdict(hang)[0] is not None
    assert Restarts(Options(restart=1, restart_on="hang")).verdict(death(1))[0] is None
    both = Restarts(Options(restart=2, restart_on="death,hang"))
    assert [both.verdict(ending)[0] for ending in (hang, death(1))] == [1.0, 2.0]
