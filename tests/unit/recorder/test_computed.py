"""What the script computed without a graph: told with its line only where it was given numbers, and in one way."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from unstuck.recorder import flight
from unstuck.recorder.probes.numerics import computed_values
from unstuck.recorder.records.numerics import BadTensor, Birth, ComputedValue

SCRIPT = """
def main(returns, adv2):
    adv = (returns - returns.mean()) / returns.std()
    for adv2 in returns:
        adv2 = adv2 / 0
    plain = returns + 1
"""


def told(tmp_path: Path, name: str, **local: Any) -> ComputedValue | None:
    file = tmp_path / "train.py"
    file.write_text(SCRIPT)
    return computed_values.computed(name, str(file), "main", local)


def test_the_spread_of_one_value(tmp_path: Path) -> None:
    made = told(tmp_path, "adv", returns=torch.ones(1))
    assert made is not None
    assert made.site is not None
    assert (made.operation, made.why, made.detail, made.site[1]) == ("std", "spread-of-too-few", "of 1 value", 3)
    more = told(tmp_path, "adv", returns=torch.ones(5))
    assert more is not None
    assert (more.why, more.detail) == ("computed", "")


def test_not_of_what_came_so_or_in_several_ways(tmp_path: Path) -> None:
    assert told(tmp_path, "adv", returns=torch.tensor([1.0, float("nan")])) is None
    assert told(tmp_path, "adv2", returns=torch.ones(2)) is None, "a loop gives it values too"
    assert told(tmp_path, "plain", returns=torch.ones(2)) is None, "a sum of numbers is one"
    assert told(tmp_path, "missing", returns=torch.ones(2)) is None


def test_a_few_steps_are_followed_however_long_they_take(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = itertools.count(0.0, 10.0)
    monkeypatch.setattr(computed_values, "monotonic", lambda: next(seconds))
    monkeypatch.setattr(sys, "setprofile", lambda _follow: None)
    made = itertools.count(100)
    monkeypatch.setattr(flight, "steps", lambda: next(made))
    birth = Birth()
    looked = computed_values.Returns(birth)
    assert [looked.stepped() for _ in range(4)] == [False, False, False, True]
    assert not birth.sought


def test_where_no_step_is_made_it_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = itertools.count(0.0, 10.0)
    monkeypatch.setattr(computed_values, "monotonic", lambda: next(seconds))
    monkeypatch.setattr(sys, "setprofile", lambda _follow: None)
    assert computed_values.Returns(Birth()).ended()


MOMENTS = """
def scaled(self, x, net):
    mean = self.total / self.seen
    spread = torch.sqrt(self.squares / self.seen - mean * mean)
    wide = (self.total.var(0) / x).log()
    learned = torch.sqrt(net.weight.sum() / x)
    guessed = torch.softmax(net(x), -1)
    y = (x - mean) / (spread + 1e-3)
"""


class Moments(torch.nn.Module):  # type: ignore[misc]  # untyped there
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.tensor(3.0))
        self.register_buffer("squares", torch.ones(2))
        self.total = torch.full((2,), 4.0)


def in_moments(tmp_path: Path, name: str, **more: Any) -> ComputedValue | None:
    file = tmp_path / "moments.py"
    file.write_text(MOMENTS)
    local = {"self": Moments(), "x": torch.ones(2), "net": torch.nn.Linear(2, 2), **more}
    tensors = {key: value for key, value in local.items() if type(value) is torch.Tensor}
    return computed_values.computed(name, str(file), "scaled", tensors, (local, {"torch": torch}))


def test_whether_anything_that_learns_is_in_it(tmp_path: Path) -> None:
    made = in_moments(tmp_path, "spread", mean=torch.ones(2))
    assert made is not None
    assert (made.operation, made.why, made.plain) == ("sqrt", "spread-as-difference", True)
    wide, learned, guessed = (in_moments(tmp_path, name) for name in ("wide", "learned", "guessed"))
    assert wide is not None
    assert wide.plain
    assert (learned is not None and learned.plain, guessed is not None and guessed.plain) == (False, False)
    broken = Moments()
    broken.squares = torch.tensor([float("nan"), 1.0])
    again = in_moments(tmp_path, "spread", mean=torch.ones(2), self=broken)
    assert again is not None
    assert (again.plain, again.why) == (False, "computed"), "NaN came with what it is computed from"


def test_what_is_made_of_such_a_value_leads_to_it(tmp_path: Path) -> None:
    made = in_moments(tmp_path, "y", mean=torch.ones(2), spread=torch.full((2,), float("nan")))
    assert made is not None
    assert made.site is not None
    assert made.site[1] == 4


def test_names_of_functions_around_a_follower_stay() -> None:
    """Before Python 3.13 what is changed in a frame's variables is written back to them, at the end of a callback."""
    most = 2.0

    def inside(x: Any) -> Any:
        return x / most

    bad = BadTensor(shape=[1], address=0, site=(__file__, 1, "inside"))
    looked = computed_values.Returns(Birth(outside=[bad]))
    assert looked.on
    inside(torch.tensor([float("nan")]))
    looked.stop()
    assert float(inside(torch.ones(1))) == 0.5
