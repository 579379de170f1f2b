"""How a loop makes its batches: code that is meant to give another one each time and cannot, and code that is not."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from unstuck.recorder.probes.loops.batch_maker import drawing, remade
from unstuck.recorder.records.loops import Remade

HEAD = """
import random
import torch

DATA = torch.arange(100.0)

def reseeding(data, count=4):
    generator = torch.Generator().manual_seed(3)
    return data[torch.randint(len(data), (count,), generator=generator)]

def shuffled(data, count):
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(3))
    return data[order[:count]]

def noise(count):
    torch.manual_seed(0)
    return torch.randn(count)

def drawing(data, generator):
    return data[torch.randint(len(data), (4,), generator=generator)]

def batches(data):
    for start in range(0, len(data), 4):
        yield data[start : start + 4]

def whole(data):
    yield data

class Feed:
    def __init__(self, data): self.data, self.at, self.moved, self.size = data, 0, 0, 4
    def stuck(self):
        return self.data[self.at : self.at + self.size]
    def moving(self):
        part = self.data[self.moved : self.moved + self.size]
        self.moved += self.size
        return part
    def seeded(self):
        rng = random.Random(7)
        return self.data[rng.sample(range(len(self.data)), 4)]
"""
ALWAYS_THE_SAME = {
    "a function that seeds": ("x = reseeding(DATA)\nmodel(x)", "reseeded", "samples"),
    "a function in the call": ("model(reseeding(DATA, 8) * 2)", "reseeded", "samples"),
    "a method that seeds": ("x = Feed(DATA).seeded()\nmodel(x)", "reseeded", "samples"),
    "a small part of an order": ("x = shuffled(DATA, 4)\nmodel(x)", "reseeded", "samples"),
    "values": ("x = noise(4)\nmodel(x)", "reseeded", "values"),
    "the loop seeds": ("torch.manual_seed(1)\nx = DATA[torch.randint(100, (4,))]\nmodel(x)", "reseeded", "samples"),
    "a new generator": ("x = next(batches(DATA))\nx = x + 1\nmodel(x)", "restarted", "samples"),
    "a new iterator of a list": ("x = next(iter([DATA, DATA + 1]))\nmodel(x)", "restarted", "samples"),
    "a position": ("x = DATA[start : start + 4]\nmodel(x)", "not moved", "samples"),
    "a position in an object": ("x = feed.stuck()\nmodel(x)", "not moved", "samples"),
}
MEANT_OR_MOVING = {
    "all of it": "model(DATA)",
    "a fixed part": "x = DATA[:80]\nmodel(x)",
    "a fold": "x = DATA[low:high]\nmodel(x)",
    "one that is drawn": "x = drawing(DATA, generator)\nmodel(x)",
    "most of an order": "x = shuffled(DATA, 80)\nmodel(x)",
    "a generator made before": "x = next(stream)\nmodel(x)",
    "a generator of one": "x = next(whole(DATA))\nmodel(x)",
    "a list of one": "x = next(iter([DATA]))\nmodel(x)",
    "a position that moves": "x = DATA[moved : moved + 4]\nmoved += 4\nmodel(x)",
    "a position in an object that moves": "x = feed.moving()\nmodel(x)",
    "a part as large as the data": "x = DATA[start : start + 100]\nmodel(x)",
    "something else is seeded": "held_out = reseeding(DATA)\nmodel(DATA)",
    "a position of the loop": "x = DATA[step : step + 4]\nmodel(x)",
}


DRAWN = {
    "rows": ("x = DATA[torch.randint(100, (4,))] + torch.randn(4)\nmodel(x)", "samples"),
    "noise": ("x = torch.randn(4)\nmodel(x)", "values"),
    "in a function": ("x = drawing(DATA, None)\nmodel(x)", "samples"),
    "most of an order": ("x = DATA[torch.randperm(len(DATA))[:80]]\nmodel(x)", None),
    "nothing": ("seen = torch.randint(100, (4,))\nmodel(DATA)", None),
}


def read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, reader: Callable[..., Remade | None] = remade
) -> Remade | None:
    script = tmp_path / "script.py"
    before = "start, moved, low, high = 0, 0, 20, 40\nfeed, stream = Feed(DATA), batches(DATA)\n"
    before += "generator = torch.Generator().manual_seed(0)\nfor step in range(2):\n"
    lines = textwrap.indent(before + textwrap.indent(body, "    "), "    ")
    script.write_text(f"{HEAD}\ndef train(model):\n{lines}\n")
    module: Any = ModuleType("script_under_test")
    module.__file__ = str(script)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(script.read_text(), str(script), "exec"), vars(module))
    found: list[Remade | None] = []
    module.train(lambda batch: found.append(reader(sys._getframe(1), len(batch))))
    return found[0]


@pytest.mark.parametrize("name", ALWAYS_THE_SAME)
def test_it_makes_the_same_batch_each_time(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body, how, drawn = ALWAYS_THE_SAME[name]
    made = read(tmp_path, monkeypatch, body)
    assert made is not None
    assert (made.how, made.drawn) == (how, drawn)
    assert made.site is not None
    line = (tmp_path / "script.py").read_text().splitlines()[made.site[1] - 1]
    assert made.text.replace(" ", "") in line.replace(" ", "")


@pytest.mark.parametrize("name", MEANT_OR_MOVING)
def test_it_is_meant_or_another_each_time(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(tmp_path, monkeypatch, MEANT_OR_MOVING[name]) is None


@pytest.mark.parametrize("name", DRAWN)
def test_it_is_drawn_by_code_that_seeds_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body, drawn = DRAWN[name]
    found = read(tmp_path, monkeypatch, body, drawing)
    assert (found.how, found.drawn) == ("reset", drawn) if found is not None else drawn is None
