"""Describing loops reads everything and leaves nothing behind."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

from unstuck.recorder.probes.loops import describe


def described() -> Any:
    return describe.describe(sys._getframe(1))


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
    assert told["frames"][0]["loops"][0]["test"]["left"] == {"text": "big.count", "value": 0}


def test_nothing_of_the_user_s_is_run() -> None:
    thing = Thing()
    told: Any = None
    while told is None or thing.computed or thing.ask():
        told = described()
        if told:
            break
    test = told["frames"][0]["loops"][0]["test"]
    assert [part["value"] for part in test["parts"]][1:] == [None, None]


def test_names_of_modules_and_closures() -> None:
    limit = 5

    def inner(step: int) -> Any:
        while step < limit and step < FAR:
            return described()
        return None

    told = inner(3)
    parts = told["frames"][0]["loops"][0]["test"]["parts"]
    assert [part["right"]["value"] for part in parts] == [5, FAR]


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
    assert told["frames"][0]["loops"][0]["test"]["right"] == {"text": "most", "value": 7}


def test_where_the_locals_are_handed_out_they_are_left_alone() -> None:
    def train(most: int) -> Any:
        known = locals()
        while len(known) < most:
            return described()
        return None

    told = train(7)
    assert told["frames"][0]["loops"][0]["test"]["value"] is None


FAR = 1000
