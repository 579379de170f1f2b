"""Describing loops reads everything and leaves nothing behind."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

from tests.unit.recorder.written import written
from unstuck.recorder.probes.loops.describe import Loops


def described() -> Any:
    """The innermost loop of the caller."""
    frame = sys._getframe(1)
    with written() as snapshots:
        Loops().asked_loops(frame)
    return snapshots[0].frames[0].loops[-1] if snapshots else None


class Thing:
    def __init__(self) -> None:
        self.count, self.most = 0, 10

    @property
    def computed(self) -> int:
        raise AssertionError("a property was run")

    def ask(self) -> bool:
        raise AssertionError("a method was run")


def test_what_was_read_is_let_go() -> None:
    def train() -> Any:
        big = Thing()
        known = weakref.ref(big)
        told = None
        while big.count < big.most:
            told = described()
            break
        del big
        gc.collect()
        return known(), told

    still_there, told = train()
    assert still_there is None
    left = told.test.compared.left
    assert (left.text, left.value.kind, left.value.number) == ("big.count", "number", 0)


def test_nothing_of_the_user_s_is_run() -> None:
    thing = Thing()
    told: Any = None
    while told is None or thing.computed or thing.ask():
        told = described()
        if told:
            break
    assert [part.value for part in told.test.parts][1:] == [None, None]


def test_names_of_modules_and_closures() -> None:
    limit = 5

    def inner(step: int) -> Any:
        while step < limit and step < FAR:
            return described()
        return None

    told = inner(3)
    assert [part.compared.right.value.number for part in told.test.parts] == [5, FAR]


class Model:
    def eval(self) -> None:
        pass


def test_a_model_put_into_eval_mode_hides_nothing() -> None:
    def validate(model: Model, most: int) -> Any:
        model.eval()
        seen = 0
        while seen < most:
            return described()
        return None

    told = validate(Model(), 7)
    right = told.test.compared.right
    assert (right.text, right.value.number) == ("most", 7)


def test_where_the_locals_are_handed_out_they_are_left_alone() -> None:
    def train(most: int) -> Any:
        known = locals()
        while len(known) < most:
            return described()
        return None

    told = train(7)
    assert told.test.value is None


FAR = 1000
