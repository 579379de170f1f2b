"""The search over candidates, with measurements made up and a clock that only they move."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from torch.utils.data import DataLoader

from unstuck.serial import from_plain, to_plain
from unstuck.takeover.interrupts import Interrupted
from unstuck.takeover.loaders_in_use import Step
from unstuck.tuning.race import Chunk
from unstuck.tuning.search_limits import Limits
from unstuck.tuning.setting_search import Search
from unstuck.tuning.tuned import Tuned, outcome
from unstuck.tuning.worker_settings import Settings


class Stage:
    """A world in which a loader gives `rate(settings)` samples a second, up to a small tremor."""

    def __init__(self, rate: Callable[[Settings], float], busy: float = 1.0) -> None:
        self.rate, self.busy = rate, busy
        self.now = 0.0
        self.open: list[Settings] = []
        self.most_open = 0
        self.opened: list[Settings] = []
        self.fails: dict[int, Exception] = {}
        self.interrupt_at = float("inf")
        self.start_up = 0.1
        self.worker_bytes = 0
        self.made: Search | None = None

    def clock(self) -> float:
        return self.now

    def trial(self, settings: Settings) -> FakeTrial:
        self.now += 0.05
        if settings.num_workers in self.fails:
            raise self.fails[settings.num_workers]
        self.open.append(settings)
        self.opened.append(settings)
        self.most_open = max(self.most_open, len(self.open))
        return FakeTrial(self, settings)

    def search(self, present: Settings, seconds: float = 60.0, **options: object) -> Search:
        limits: Limits = options.pop("limits", Limits(cores=4, most_workers=16))  # type: ignore[assignment]
        step: Step | None = options.pop("step", None)  # type: ignore[assignment]
        why_not: Callable[[], str] = options.pop("why_not", str)  # type: ignore[assignment]
        search = Search(present, limits, self.trial, seconds=seconds, step=step, clock=self.clock, why_not=why_not)
        self.made = search
        search.run()
        assert not self.open, "a trial was left open"
        assert self.most_open <= 2
        return search


class FakeTrial:
    def __init__(self, stage: Stage, settings: Settings) -> None:
        self.stage, self.settings = stage, settings
        self.start_up, self.whole, self.length = stage.start_up, False, None
        self.batch, self.batch_bytes, self.worker_bytes = 16.0, 1_000_000, stage.worker_bytes
        self.cpu = self.wanted = self.cpu_samples = 0.0

    def slice(self, seconds: float) -> list[Chunk]:
        self.stage.now += seconds
        if self.stage.now > self.stage.interrupt_at:
            raise Interrupted
        rate = self.stage.rate(self.settings)
        samples = rate * seconds
        self.cpu_samples += samples
        used = min(self.stage.busy * max(1, self.settings.num_workers), 4.0)
        self.cpu += used * seconds
        self.wanted = self.cpu
        return [Chunk(samples / 4 * tremor, seconds / 4) for tremor in (0.99, 1.01, 1.0, 1.0)]

    def close(self) -> None:
        self.stage.open.remove(self.settings)


def computing(settings: Settings) -> float:
    """Four cores, each good for 100 samples a second; beyond four workers they get into each other's way."""
    workers = settings.num_workers
    return 100.0 * max(1, min(workers, 4)) * (1 - 0.03 * max(0, workers - 4))


def waiting(settings: Settings) -> float:
    return 100.0 * max(1, settings.num_workers)


def tiny(settings: Settings) -> float:
    return 100_000.0 if not settings.num_workers else 9_000.0


@pytest.mark.parametrize("present", [0, 1, 2, 8, 16])
def test_a_computing_data_set_gets_as_many_workers_as_cores(present: int) -> None:
    search = Stage(computing).search(Settings().but(num_workers=present))
    assert search.best.settings.num_workers == 4


@pytest.mark.parametrize("present", [0, 4])
def test_a_waiting_data_set_gets_more_workers_than_cores(present: int) -> None:
    search = Stage(waiting, busy=0.02).search(Settings().but(num_workers=present))
    assert search.best.settings.num_workers == 16


def test_tiny_samples_need_no_workers_and_it_is_soon_clear() -> None:
    stage = Stage(tiny)
    search = stage.search(Settings())
    assert search.best is search.present
    assert search.elapsed < 10
    assert outcome(search).keep


@pytest.mark.parametrize("present", [1, 4])
def test_workers_that_only_cost_are_given_up(present: int) -> None:
    search = Stage(tiny).search(Settings().but(num_workers=present))
    tuned = outcome(search)
    assert tuned.settings["num_workers"] == 0
    assert tuned.changes == {"num_workers": 0, "prefetch_factor": None}
    assert tuned.gain == pytest.approx(100 / 9, rel=0.01)


def test_of_equals_the_cheapest() -> None:
    search = Stage(lambda settings: 50.0 if settings.num_workers < 2 else 100.0, busy=0.3).search(Settings())
    assert search.best.settings == Settings().but(num_workers=2)


def test_prefetch_is_raised_only_where_it_helps() -> None:
    def rate(settings: Settings) -> float:
        return computing(settings) * (1.3 if (settings.prefetch_factor or 0) >= 4 else 1.0)

    search = Stage(rate).search(Settings())
    assert (search.best.settings.num_workers, search.best.settings.prefetch_factor) == (4, 4)


def test_threads_in_workers_where_cores_are_left() -> None:
    def rate(settings: Settings) -> float:
        return (150.0 if settings.threads > 1 else 100.0) if settings.num_workers == 1 else 60.0

    search = Stage(rate).search(Settings())
    assert (search.best.settings.num_workers, search.best.settings.threads) == (1, 4)
    assert outcome(search).threads == 4


def test_workers_are_kept_where_passes_are_short() -> None:
    stage = Stage(computing)
    stage.start_up = 2.0
    search = stage.search(Settings().but(num_workers=4), limits=Limits(cores=4, most_workers=16, length=50))
    assert search.best.settings.persistent_workers
    long = Stage(computing).search(Settings().but(num_workers=4), limits=Limits(4, 16, length=100_000))
    assert not long.best.settings.persistent_workers


def test_workers_that_lose_only_by_their_starts_are_tried_as_persistent_ones() -> None:
    stage = Stage(computing)
    stage.start_up = 20.0
    search = stage.search(Settings(), limits=Limits(cores=4, most_workers=16, length=50))
    assert search.best.settings == Settings().but(num_workers=4, persistent_workers=True)


def test_memory_is_pinned_only_with_a_gpu() -> None:
    def rate(settings: Settings) -> float:
        return computing(settings) * (1.2 if settings.pin_memory else 1.0)

    assert not Stage(rate).search(Settings()).best.settings.pin_memory
    assert Stage(rate).search(Settings(), limits=Limits(4, 16, gpu=True)).best.settings.pin_memory


def test_a_candidate_that_fails_is_listed_and_the_search_goes_on() -> None:
    stage = Stage(computing)
    stage.fails = {4: ValueError("bad\nrow"), 1: ValueError("bad row")}
    tuned = outcome(stage.search(Settings()))
    errors = {row.name: row.error for row in tuned.table if row.error}
    assert errors["4 workers"] == "ValueError: row"
    assert tuned.settings["num_workers"] == 3
    assert from_plain(Tuned, to_plain(tuned)) == tuned


def test_the_present_settings_fail() -> None:
    stage = Stage(computing)
    stage.fails = {4: ValueError("bad row")}
    tuned = outcome(stage.search(Settings().but(num_workers=4)))
    assert not tuned.keep
    assert "fail" in tuned.why


def test_too_little_shared_memory() -> None:
    search = Stage(computing).search(Settings(), limits=Limits(4, 16, room=10_000_000))
    assert search.best.settings.num_workers == 2
    assert any("shared memory" in each.error for each in search.candidates.values())


def test_too_little_memory_for_as_many_workers() -> None:
    stage = Stage(waiting, busy=0.02)
    stage.worker_bytes = 1 << 30
    limits = Limits(cores=4, most_workers=16, memory=10 << 30, process_bytes=3 << 30)
    search = stage.search(Settings(), limits=limits)
    assert 4 <= search.best.settings.num_workers <= 7
    assert any("GB of memory" in each.error for each in search.candidates.values())


def test_a_small_gain_is_no_reason_to_change() -> None:
    tuned = outcome(Stage(lambda s: 104.0 if s.num_workers else 100.0).search(Settings()))
    assert tuned.keep
    assert tuned.changes == {}
    assert "not clearly better" in tuned.why or "Nothing that was measured" in tuned.why


# --- what must not be proposed ---------------------------------------------------------------------------------


def in_a_worker(what: str) -> Exception:
    return AssertionError(f"Caught AssertionError in DataLoader worker process 0.\nOriginal Traceback\n{what}")


@pytest.mark.parametrize("error", [in_a_worker("AssertionError: short read"), RuntimeError("DataLoader timed out")])
def test_what_fails_in_the_last_race_is_not_the_choice(error: Exception) -> None:
    stage = Stage(computing)

    def rate(settings: Settings) -> float:
        if settings.num_workers > 2 and stage.made is not None and stage.made.last is not None:
            raise error
        return computing(settings)

    stage.rate = rate
    search = stage.search(Settings())
    tuned = outcome(search)
    assert not any(row.chosen and row.error for row in tuned.table)
    assert tuned.keep
    assert tuned.changes == {}
    assert tuned.gain == 1
    assert any("short read" in note for note in tuned.notes) == ("short read" in str(error))


@pytest.mark.parametrize(("present", "chosen"), [(0, 0), (2, 2), (3, 0)])
def test_where_samples_fail_in_some_workers_no_others_are_proposed(present: int, chosen: int) -> None:
    """Three and more fail: two, if the script has them, are kept; if it has three itself, none are proposed."""
    stage = Stage(computing)
    stage.fails = {number: in_a_worker("AssertionError: short read") for number in range(3, 17)}
    tuned = outcome(stage.search(Settings().but(num_workers=present)))
    assert tuned.settings["num_workers"] == chosen
    assert any("short read" in note for note in tuned.notes)
    assert sum(bool(row.error) for row in tuned.table) == 1


def test_no_workers_where_they_must_not_be_started() -> None:
    stage = Stage(computing)
    limits = Limits(cores=4, most_workers=16, no_workers="They would run the script again.")
    tuned = outcome(stage.search(Settings(), limits=limits))
    assert tuned.keep
    assert tuned.notes == ("They would run the script again.",)
    tuned = outcome(stage.search(Settings().but(num_workers=2), limits=limits))
    assert tuned.settings["num_workers"] == 0
    assert tuned.why == "The present settings were not measured."
    assert all(not settings.num_workers for settings in stage.opened)


@pytest.mark.parametrize("present", [0, 2])
def test_a_sign_seen_with_the_present_settings_stops_the_search_for_workers(present: int) -> None:
    stage = Stage(computing)
    search = stage.search(Settings().but(num_workers=present), why_not=lambda: "They would share a file.")
    assert {settings.num_workers for settings in stage.opened} == {0, present}
    assert outcome(search).notes == ("They would share a file.",)


def test_the_number_of_workers_stays_where_it_decides_how_many_samples_there_are() -> None:
    stage = Stage(waiting, busy=0.02)
    limits = Limits(cores=4, most_workers=16, undivided="Each gives all.")
    stage.search(Settings().but(num_workers=3), limits=limits)
    assert {settings.num_workers for settings in stage.opened} == {3}


def test_workers_are_not_kept_where_the_script_changes_the_data_set() -> None:
    stage = Stage(computing)
    stage.start_up = 2.0
    limits = Limits(cores=4, most_workers=16, length=50, not_persistent="It sets level.")
    tuned = outcome(stage.search(Settings().but(num_workers=4), limits=limits))
    assert not tuned.settings["persistent_workers"]
    assert tuned.notes == ("It sets level.",)
    stage = Stage(computing)
    stage.start_up = 2.0
    kept = outcome(stage.search(Settings(), limits=Limits(cores=4, most_workers=16, length=50)))
    assert kept.settings["persistent_workers"]
    assert "do not see what the script sets" in kept.notes[0]


def test_going_without_workers_takes_back_what_is_about_them() -> None:
    present = Settings().but(
        num_workers=2, prefetch_factor=4, persistent_workers=True, start_method="fork", timeout=60.0
    )
    tuned = outcome(Stage(tiny).search(present))
    assert tuned.changes == {
        "num_workers": 0,
        "prefetch_factor": None,
        "persistent_workers": False,
        "multiprocessing_context": None,
        "timeout": 0,
    }
    assert DataLoader([1], **tuned.settings).num_workers == 0


def test_nothing_is_said_of_the_training_where_samples_are_kept() -> None:
    step = Step(compute=0.1, cpu=0.01, batch=16)
    search = Stage(computing).search(Settings(), step=step)
    assert outcome(search).training is not None
    kept = outcome(search, "cache")
    assert kept.training is None
    assert "(cache)" in kept.notes[0]


# --- against the step of the training --------------------------------------------------------------------------


def test_a_training_that_computes_longer_is_left_alone_at_once() -> None:
    stage = Stage(computing)
    step = Step(compute=1.0, cpu=0.5, batch=16)
    search = stage.search(Settings().but(num_workers=2), step=step)
    tuned = outcome(search)
    assert tuned.keep
    assert "do not limit" in tuned.why
    assert len(search.candidates) == 1


def test_no_more_workers_than_the_step_needs() -> None:
    """16 samples in 0.1 s: 160 a second. Two workers give 200."""
    step = Step(compute=0.1, cpu=0.01, batch=16)
    tuned = outcome(Stage(computing).search(Settings(), step=step))
    assert tuned.settings["num_workers"] == 2
    assert tuned.training is not None
    assert tuned.training.wait_now == pytest.approx(0.16)
    assert tuned.training.wait_then == 0
    assert not tuned.training.limited
    assert tuned.training.speedup == pytest.approx(2.6)


def test_cores_are_shared_with_a_training_that_computes_on_them() -> None:
    """The step alone keeps four cores busy: workers can only take them away from it."""
    step = Step(compute=0.1, cpu=0.4, batch=16)
    tuned = outcome(Stage(computing).search(Settings(), step=step))
    assert tuned.training is not None
    assert tuned.training.speedup < 2.6


def test_a_faster_loader_that_is_not_worth_it_is_named_with_the_reason() -> None:
    """Two workers give 1.44 times the samples, but use the cores that the step needs."""
    stage = Stage(lambda settings: 144.0 if settings.num_workers > 1 else 100.0)
    step = Step(compute=0.8, cpu=3.3, batch=100)
    tuned = outcome(stage.search(Settings().but(num_workers=1), step=step))
    assert tuned.keep
    assert max(row.relative or 0.0 for row in tuned.table) == pytest.approx(1.44, rel=0.02)
    assert "1.44 times the samples per second" in tuned.why
    assert "the cores that the training itself needs" in tuned.why


# --- its end ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("present", [1, 2, 8])
def test_there_is_always_time_to_measure_no_workers(present: int) -> None:
    stage = Stage(tiny)
    stage.start_up = 0.1
    search = stage.search(Settings().but(num_workers=present), seconds=2.0)
    assert [settings.num_workers for settings in stage.opened][:2] == [present, 0]
    assert search.best.settings.num_workers == 0


def test_it_is_said_when_the_time_was_over() -> None:
    assert "The time (1 s) was over" in outcome(Stage(computing).search(Settings(), seconds=1.0)).notes[-1]
    assert outcome(Stage(computing).search(Settings())).notes == ()


@pytest.mark.parametrize("seconds", [1.0, 3.0, 8.0])
def test_it_ends_in_time(seconds: float) -> None:
    search = Stage(waiting, busy=0.02).search(Settings(), seconds=seconds)
    assert search.elapsed < seconds + 1.0
    assert search.present.slices


@pytest.mark.parametrize("seconds", [2.0, 2.3, 2.6])
def test_pairs_of_a_last_race_that_was_cut_short_count(seconds: float) -> None:
    """The rates of the best are all over the place; side by side it was far better each time."""
    stage = Stage(waiting, busy=0.02)
    stage.rate = lambda settings: waiting(settings) * (1.0 if int(stage.now * 7) % 2 or not settings.num_workers else 3)
    search = stage.search(Settings(), seconds=seconds)
    assert search.last is not None
    assert 0 < len(search.last.ratios) < 3
    assert outcome(search).settings["num_workers"] > 1


def test_ctrl_c_gives_the_best_so_far() -> None:
    stage = Stage(computing)
    stage.interrupt_at = 4.0
    search = stage.search(Settings())
    tuned: Tuned = outcome(search)
    assert tuned.interrupted
    assert tuned.settings["num_workers"] > 0


def test_nothing_is_known_in_the_first_moment() -> None:
    stage = Stage(computing)
    stage.interrupt_at = 0.0
    tuned = outcome(stage.search(Settings()))
    assert tuned.keep
    assert tuned.table == ()


def test_a_machine_that_slows_down_misleads_nobody() -> None:
    """Everything takes twice as long from the sixth second on; more workers are better all the same."""
    stage = Stage(computing)
    stage.rate = lambda settings: computing(settings) * (1.0 if stage.now < 3 else 0.5)
    assert stage.search(Settings()).best.settings.num_workers == 4
