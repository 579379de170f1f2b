"""Loops, lengths and what grows are read from objects of any kind, and nothing of these is run."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
import torch

from tests.unit.recorder.untouchable import (
    OddDict,
    OddFloat,
    OddList,
    OddNumber,
    OddText,
    OddTuple,
    Slotted,
    Untouchable,
    watching,
)
from tests.unit.recorder.written import written

KINDS = {
    "an object": Untouchable,
    "slots": Slotted,
    "text": lambda: OddText("epoch"),
    "a whole number": lambda: OddNumber(3),
    "a number": lambda: OddFloat(3.0),
    "a list": lambda: OddList([1, 2]),
    "a dictionary": lambda: OddDict(epoch=1),
    "a tuple": lambda: OddTuple((1, 2)),
    "a class": lambda: Untouchable,
}
CONDITIONS = (
    "thing", "not thing", "thing == 3", "3 != thing", "thing < 3", "thing.limit < 3", "thing.bound < 3",
    "thing.computed < 3", "thing.nothing < 3", "len(thing) < 3", "thing[0] < 3", "thing['epoch'] < 3", "-thing < 3",
    "thing + 1 < 3", "1 + thing < 3", "thing.item() < 3", "thing() < 3", "thing in (1, 2)", "thing is None",
    "state['epoch'] < 3", "state[thing] < 3", "(thing.computed or thing) and thing", "thing.shape[0] < 3",
    "holder.thing < 3", "holder.thing.computed == 3", "int(thing) < 3", "thing.size(0) < 3", "stop.step(thing)",
    "f'{thing}' == ''", "max(thing, 3) < 3",
)  # fmt: skip


class Holder:
    def __init__(self, thing: Any) -> None:
        self.thing = thing


class Stopper:
    def __init__(self, thing: Any) -> None:
        self.best = self.bad = thing

    def step(self, value: Any) -> Any:
        if value < self.best:
            self.best = value
        return self.bad >= self.best


SCRIPT = """
def train(ask, thing, holder, state, stop, done=False):
    while {condition} or True:
        ask()
        if {condition}:
            thing = thing
            break
        done = True
        for each in thing:
            pass
        break
    for number, each in enumerate(thing):
        ask()
        break
    for each in (thing if True else ()):
        ask()
        break
    for each in thing:
        ask()
        break
"""


def ask_loops() -> None:
    from unstuck.recorder.probes.loops.describe import Loops

    frame = sys._getframe(1)
    with written() as told, watching() as ran:
        Loops().asked_loops(frame)
    assert ran == []
    assert told[0].frames[0].function == "train", "it was not described at all"


def ask_growth() -> None:
    from unstuck.recorder.probes.memory.growing import Growth

    frame = sys._getframe(1)
    with watching() as ran:
        Growth().asked_growth(frame)
    assert ran == []


@pytest.mark.parametrize("asked", [ask_loops, ask_growth])
@pytest.mark.parametrize("kind", KINDS)
def test_at_a_request(tmp_path: Any, kind: str, asked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, condition in enumerate(CONDITIONS if asked is ask_loops else CONDITIONS[:1]):
        script = tmp_path / f"script_{number}.py"
        script.write_text(SCRIPT.format(condition=condition))
        module: Any = ModuleType(f"script_{number}")
        module.__file__ = str(script)
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(compile(script.read_text(), str(script), "exec"), vars(module))
        thing = KINDS[kind]()
        state = {thing: 1} if kind in ("an object", "text") else {"epoch": 1, "thing": thing}
        module.kept = [thing, {1: thing}, {thing} if kind == "an object" else thing]
        module.large = {Untouchable() if n == 90 else n: thing for n in range(100)}
        try:
            module.train(asked, thing, Holder(thing), state, Stopper(thing))
        except AssertionError:
            raise
        except Exception:
            continue  # the condition means nothing for a thing of this kind


def saying(answer: str, path: Any) -> Any:
    source = "class Odd:\n    def __init__(self, thing):\n        self.thing, self.things = thing, [thing]\n"
    source += f"    def __len__(self):\n        return {answer}\n"
    path.write_text(source)
    space: dict[str, Any] = {"__name__": "odd"}
    exec(compile(source, str(path), "exec"), space)
    return space["Odd"]


@pytest.mark.parametrize("kind", KINDS)
def test_at_a_length(tmp_path: Any, kind: str) -> None:
    from unstuck.recorder import lengths

    thing = KINDS[kind]()
    answers = [condition.replace("thing", "self.thing") for condition in CONDITIONS]
    answers += ["sum(len(each) for each in self.things)", "sum(self.things)", "len(self.things) + self.thing.limit"]
    made = [saying(answer, tmp_path / f"odd_{n}.py")(thing) for n, answer in enumerate(answers)]
    data = torch.utils.data.TensorDataset(torch.zeros(4))
    for each in (thing, *made):
        samplers = [torch.utils.data.SequentialSampler(each), torch.utils.data.SubsetRandomSampler(each)]
        loader = torch.utils.data.DataLoader(data)
        with watching() as ran:
            lengths.length(each)
            for sampler in samplers:
                lengths.length(sampler)
            for name in ("dataset", "sampler", "batch_sampler", "batch_size", "drop_last"):
                before = loader.__dict__[name]
                loader.__dict__[name] = each
                lengths.loader_length(loader)
                loader.__dict__[name] = before
        assert ran == []
