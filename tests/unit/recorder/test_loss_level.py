"""Where a loss usually is: a value far above that stands out, also if such values came early on."""

from __future__ import annotations

from unstuck.recorder.probes.learning.losses import Series


def stood_out(values: list[float]) -> list[int]:
    series = Series(None)
    found = []
    for step, value in enumerate(values):
        series.add(value, step)
        if series.far:
            found.append(step)
    return found


def noisy(count: int) -> list[float]:
    return [1.0 + 0.2 * ((7 * step) % 11) / 11 for step in range(count)]


def test_bad_batches_from_the_start_on_do_not_hide_later_ones() -> None:
    values = noisy(400)
    for step in range(20, 400, 40):
        values[step] = 1e6
    assert stood_out(values) == list(range(100, 400, 40))


def test_a_loss_that_only_falls_never_stands_out() -> None:
    assert stood_out([5.0 * 0.99**step + 0.1 * ((7 * step) % 11) / 11 for step in range(600)]) == []
