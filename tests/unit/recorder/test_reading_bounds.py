"""However large or odd what is looked at may be, a request reads a part of it and takes no time to speak of."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import thread_time
from types import ModuleType
from typing import Any

import pytest
import torch

from tests.unit.recorder.written import make_step, written
from unstuck.recorder import journal, lengths, objects
from unstuck.recorder.probes.loops.describe import Loops
from unstuck.recorder.probes.memory.growing import Growth

SECONDS = 0.5
"""Of processor time; what parses a file for the first time is within it."""
MANY = 400_000


def loops() -> list[Any]:
    """Of the caller, which must not ask for frames itself: it might hold on to its locals, and would be passed over."""
    return asked(Loops().asked_loops, sys._getframe(1))


def growth() -> list[Any]:
    probe = Growth()
    asked(probe.asked_growth, sys._getframe(1))
    make_step()
    return asked(probe.asked_growth, sys._getframe(1))


def asked(ask: Callable[[Any], None], frame: Any) -> list[Any]:
    with written() as found:
        gc.disable()  # what other tests have left in this process is not to be gone through within it
        try:
            began = thread_time()
            ask(frame)
            took = thread_time() - began
        finally:
            gc.enable()
        assert took < SECONDS
    assert all(len(journal.encode(record)) < 200_000 for record in found)
    return found


def run(path: Path, source: str, **names: Any) -> Any:
    """What `train(ask, ...)` of the script gives back."""
    path.write_text(source)
    module: Any = ModuleType(path.stem)
    module.__file__ = str(path)
    exec(compile(source, str(path), "exec"), vars(module))
    return module.train(lambda: asked(Loops().asked_loops, sys._getframe(1)), **names)


def test_a_value_of_a_megabyte() -> None:
    def train(text: str, number: int, many: Any) -> Any:
        while text != "a" or number < 5 or many == 3:
            return loops()
        return None

    found = train("x" * MANY, 10**300_000, list(range(MANY)))
    sides = [part.compared.left.value for part in found[0].frames[0].loops[0].test.parts]
    assert [side.kind for side in sides] == ["text", "number", "object"]
    assert all(len(side.text) < 100 for side in sides)


@pytest.mark.parametrize(
    "condition",
    [
        "step < 10 and name != " + repr("y" * 200_000),
        "step < 10 and step in [" + "1, " * 50_000 + "1]",
        " + ".join(["step"] * 1500) + " < 10",
        "not " * 1500 + "step",
        " or ".join(f"step == {number}" for number in range(5000)) + " or step < 10",
        "step < " + "9" * 4000,
    ],
    ids=["a-long-text", "a-long-list", "many-terms", "many-nots", "many-parts", "a-long-number"],
)
def test_a_condition_of_any_size(tmp_path: Path, condition: str) -> None:
    source = f"def train(ask, step=0, name=''):\n    while {condition} or True:\n        return ask()\n"
    for snapshot in run(tmp_path / "script.py", source):
        loop = snapshot.frames[0].loops[0]
        assert len(loop.text) <= 200
        assert len(loop.test.parts) <= 32


def test_a_script_that_comes_through_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "script.py")
    source = "def train(ask):\n    while True:\n        return ask()\n"
    space: dict[str, Any] = {}
    exec(compile(source, str(tmp_path / "script.py"), "exec"), space)
    assert space["train"](lambda: asked(Loops().asked_loops, sys._getframe(1))) == []


def test_a_very_long_chain_of_branches(tmp_path: Path) -> None:
    chain = "        if step == 0: pass\n" + "".join(f"        elif step == {n}: break\n" for n in range(1, 900))
    source = f"def train(ask, step=0):\n    while True:\n        found = ask()\n{chain}        return found\n"
    found = run(tmp_path / "script.py", source)
    for snapshot in found:
        assert len(snapshot.frames[0].loops[0].exits) <= 16


def test_a_condition_that_calls_itself(tmp_path: Path) -> None:
    source = """
class Stop:
    def __call__(self, x): return self(x)
def again(x): return again(x)
def train(ask):
    stop = Stop()
    while not again(1) if False else True:
        return ask() if stop and True else None
    while again(1) or stop(1):
        pass
"""
    assert len(run(tmp_path / "script.py", source)) == 1
    source = "def again(x): return again(x)\ndef train(ask):\n    while True:\n        if ask.__name__ == '':\n"
    source += "            if again(ask):\n                break\n        return ask()\n"
    (snapshot,) = run(tmp_path / "again.py", source)
    assert snapshot.frames[0].loops[0].exits[0].met is not True


def test_a_deep_stack() -> None:
    def deeper(levels: int) -> Any:
        while levels:
            return deeper(levels - 1)
        return loops(), growth()

    before = sys.getrecursionlimit()
    sys.setrecursionlimit(6000)
    try:
        (snapshot,), _ = deeper(3000)
    finally:
        sys.setrecursionlimit(before)
    assert len(snapshot.frames) == 12


def test_a_stack_that_is_nearly_full() -> None:
    """There is no answer then; and no fault."""

    def deeper() -> Any:
        while True:
            try:
                return deeper()
            except RecursionError:
                return loops()

    assert len(deeper()) <= 1


class Lying(list):  # type: ignore[type-arg]
    def __len__(self) -> int:
        return 10**12

    def __iter__(self) -> Any:
        raise AssertionError


class Crowded:
    """Of very many attributes."""


def test_what_is_very_large(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("crowded")
    module.__file__ = "/home/somebody/crowded.py"
    vars(module).update((f"name_{n}", n) for n in range(MANY))
    monkeypatch.setitem(sys.modules, "crowded", module)
    crowded = Crowded()
    vars(crowded).update((f"name_{n}", [n]) for n in range(100_000))
    nested: list[Any] = []
    inner = nested
    for _ in range(5000):
        inner.append([])
        inner = inner[0]

    def train(lying: Any, large: Any, keys: Any) -> Any:
        kept = [crowded, nested, lying, large, keys]
        found = growth()
        kept.clear()
        return found

    lying, large = Lying([1, 2, 3]), dict.fromkeys(range(MANY), "x")
    train(lying, large, {"k" * MANY: [1], 10**5000: [2], "a" * 300: [large]})
    assert objects.length(lying) == 3
    assert len(objects.some_items(large)) == 6
    assert lengths.length(lying) == 10**12  # as `len` would say; read, not run


def test_names_of_a_crowded_module_are_found() -> None:
    space = {str(n): n for n in range(MANY)}
    began = thread_time()
    assert objects.entry(space, "7") == 7
    assert thread_time() - began < 0.01


class Summed:
    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)


class Circle:
    def __len__(self) -> int:
        return len(self) + 1


def test_lengths_of_what_is_very_large() -> None:
    began = thread_time()
    assert lengths.length(Summed([[1]] * 400)) == 400
    assert lengths.length(Summed([[1]] * MANY)) is None
    assert lengths.length(Circle()) is None
    assert lengths.length(range(10**30)) is None
    assert lengths.length(torch.utils.data.Subset([1], range(MANY))) == MANY
    assert thread_time() - began < SECONDS
