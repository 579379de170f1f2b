"""The stall clock under a clock of our own: an hour passes in no time."""

from __future__ import annotations

from unstuck.supervise.clock import EXCUSED_LOOK, LOOKS_AT, TICK, Clock

MAIN = 7


class Hours:
    """Drives a clock tick by tick."""

    def __init__(self, suspect: float = 10.0) -> None:
        self.clock = Clock(suspect)
        self.now = 1000.0
        self.progress = 1
        self.looks: list[float] = []

    def pass_by(self, seconds: float, *, p99: float = 0.0, stopped: bool = False, excuse: str = "") -> None:
        for _ in range(int(seconds / TICK)):
            self.now += TICK
            self.clock.tick(self.now, {MAIN: self.progress}, frozenset([MAIN] if stopped else []))
            if self.clock.wants_look(MAIN, p99):
                self.looks.append(self.standing)
                self.clock.looked(MAIN, excuse)

    @property
    def standing(self) -> float:
        return self.clock.hands[MAIN].standing

    def suspects(self, p99: float = 0.0, count: int = 0, interrupted: bool = False) -> bool:
        return self.clock.suspects(MAIN, p99, count, interrupted)


def test_two_looks_come_within_five_seconds_and_then_ever_fewer() -> None:
    hours = Hours()
    hours.pass_by(3600)
    assert sum(at <= 5.5 for at in hours.looks) >= 2
    assert len(hours.looks) < 30
    gaps = [b - a for a, b in zip(hours.looks[11:], hours.looks[12:], strict=False)]
    assert gaps == sorted(gaps)


def test_movement_starts_it_anew() -> None:
    hours = Hours()
    hours.pass_by(9)
    hours.progress += 1
    hours.pass_by(9)
    assert hours.standing < 9.1
    assert not hours.suspects()
    hours.pass_by(2)
    assert hours.suspects()


def test_stopped_time_does_not_count() -> None:
    hours = Hours()
    hours.pass_by(5)
    hours.pass_by(3600, stopped=True)
    assert hours.standing <= 5
    assert not hours.suspects()


def test_time_in_which_we_were_not_scheduled_does_not_count() -> None:
    hours = Hours()
    hours.pass_by(3)
    hours.now += 3600
    hours.pass_by(1)
    assert hours.standing <= 3 + 2 * TICK + 1


def test_an_hour_at_a_debugger_prompt_does_not_count_but_is_looked_at_again() -> None:
    hours = Hours()
    hours.pass_by(3600, excuse="it is at a debugger prompt")
    assert hours.standing <= LOOKS_AT[0] + TICK
    assert not hours.suspects(interrupted=True)
    assert len(hours.looks) >= 3600 / EXCUSED_LOOK / 2


def test_an_excuse_that_ends_lets_the_clock_run_on() -> None:
    hours = Hours()
    hours.pass_by(60, excuse="it is compiling")
    hours.pass_by(30)
    assert hours.suspects()


def test_a_slow_run_is_not_suspected_at_its_own_pace() -> None:
    hours = Hours()
    hours.pass_by(60, p99=40.0)
    assert hours.looks == []
    assert not hours.suspects(p99=40.0, count=50)
    hours.pass_by(70, p99=40.0)
    assert hours.suspects(p99=40.0, count=50)


def test_ctrl_c_asks_early_but_only_far_outside_the_pace() -> None:
    hours = Hours()
    hours.pass_by(2)
    assert hours.suspects(p99=0.01, count=100, interrupted=True)
    assert not hours.suspects(p99=0.01, count=100)
    assert not hours.suspects(p99=1.0, count=100, interrupted=True)
    assert not hours.suspects(interrupted=True), "without a pace two seconds are nothing"


def test_stall_after_replaces_the_times() -> None:
    hours = Hours(suspect=2.0)
    hours.pass_by(2.5)
    assert hours.suspects()
    assert hours.looks
    assert hours.looks[0] <= 1.0


def test_a_process_that_is_gone_is_forgotten() -> None:
    hours = Hours()
    hours.pass_by(5)
    hours.clock.tick(hours.now + 1, {})
    assert hours.clock.hands == {}
