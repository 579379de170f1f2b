"""Plain attributes of a data set, and the names that its sample path reads."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import torch

from unstuck.recorder.probes.data.dataset_state import names_read, state


class Flip:
    def __init__(self) -> None:
        self.chance = 0.5

    def __call__(self, x: Any) -> Any:
        return x * self.chance


class Data:
    def __init__(self) -> None:
        self.epoch = 3
        self.name = "train"
        self.sigma = torch.tensor(0.25, dtype=torch.float64)
        self.range = np.array([1, 2])
        self.transform = Flip()
        self.big = torch.zeros(1000)
        self.lock = threading.Lock()
        self.hits = 0

    def __getitem__(self, i: int) -> Any:
        return self.transform(self._draw(i))

    def _draw(self, i: int) -> Any:
        return i * self.epoch


def test_plain_values_are_kept_and_others_passed_over() -> None:
    expected = {"epoch": 3, "name": "train", "sigma": 0.25, "range": [1, 2], "transform.chance": 0.5, "hits": 0}
    assert state(Data()) == expected


def test_names_are_followed_into_methods_and_transforms() -> None:
    read = names_read(Data())
    assert {"epoch", "chance", "transform"} <= read
    assert "hits" not in read


def test_anything_at_all_may_be_a_data_set() -> None:
    for thing in (None, 3, [1, 2], torch.zeros(3), object()):
        state(thing)
        names_read(thing)
