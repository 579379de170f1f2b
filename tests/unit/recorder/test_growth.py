"""What grows is found by name, whatever holds it; nothing of the user's is run, nothing is kept.

No assert here may compare a bare name: pytest then writes `locals()` into the test, and such functions are passed over.
"""

from __future__ import annotations

import gc
import itertools
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.unit.recorder.written import make_step, set_steps, written
from unstuck.recorder.probes.memory.growing import Growth
from unstuck.recorder.records.loops import Grower, GrowthSnapshot


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    set_steps(0)
    yield
    set_steps(0)


def here() -> Any:
    """The caller's frame: a function that itself asks for frames may hold on to its locals, and is passed over."""
    return sys._getframe(1)


def asked(probe: Growth, frame: Any) -> GrowthSnapshot | None:
    with written() as snapshots:
        probe.asked_growth(frame)
    return snapshots[0] if snapshots else None


def answers(step: Callable[[], object], frame: Any, steps: int = 40, every: int = 10) -> list[Any]:
    """Make steps, and ask every ten of them."""
    probe = Growth()
    told = []
    for number in range(1, steps + 1):
        step()
        make_step()
        if number % every == 0:
            told.append(asked(probe, frame))
    return told


def growing(told: GrowthSnapshot, path: str) -> Grower:
    return next(each for each in told.growing if each.path.startswith(path))


def test_losses_kept_with_their_graphs() -> None:
    model, kept_losses = nn.Linear(4, 1), []

    def step() -> None:
        kept_losses.append(model(torch.ones(2, 4)).sum())

    first, *later = answers(step, here())
    found = growing(later[-1], "kept_losses in ")
    assert [first] == [None]
    assert (found.first, found.now, found.times) == (10, 40, 3)
    assert found.graph
    assert found.holds == "Tensor"
    assert found.site is not None
    assert "kept_losses.append" in Path(found.site[0]).read_text().splitlines()[found.site[1] - 1]


def test_numbers_carry_no_graph() -> None:
    model, numbers = nn.Linear(4, 1), []
    told = answers(lambda: numbers.append(model(torch.ones(2, 4)).sum().item()), here())
    found = growing(told[-1], "numbers in ")
    assert not found.graph
    assert found.bytes == 0


class Recorder:
    def __init__(self) -> None:
        self.history: dict[str, list[Any]] = {"loss": []}

    @property
    def danger(self) -> int:
        raise AssertionError("a property was read")

    def __getattr__(self, name: str) -> int:
        raise AssertionError(f"{name} was asked for")

    def __len__(self) -> int:
        raise AssertionError("its length was asked for")

    def note(self, loss: Any) -> None:
        self.history["loss"].append(loss)


def test_an_attribute_and_no_property() -> None:
    recorder, model = Recorder(), nn.Linear(4, 1)
    told = answers(lambda: recorder.note(model(torch.ones(2, 4)).sum()), here())
    found = growing(told[-1], "recorder.history['loss'] in ")
    assert found.graph
    assert found.site is not None
    assert found.site[2] == "Recorder.note"


def watch_layer(layer: nn.Module) -> None:
    seen = []

    def hook(*seen_by_torch: Any) -> None:
        seen.append(seen_by_torch[-1])

    layer.register_forward_hook(hook)


def test_activations_in_the_closure_of_a_hook() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    watch_layer(model[0])
    told = answers(lambda: model(torch.ones(2, 4)), here())
    found = growing(told[-1], "seen in the closure of hook")
    assert found.hook
    assert found.graph
    assert found.site is not None
    assert found.site[2].endswith("hook")


def test_hooks_registered_again_and_again() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    told = answers(lambda: model[0].register_forward_hook(lambda *_: None), here())
    found = growing(told[-1], "forward hooks of model.0 in ")
    assert (found.kind, found.holds, found.now) == ("hooks", "", 40)


def test_batches_kept_by_cycle() -> None:
    batches = itertools.cycle(torch.ones(8, 100) for _ in range(1000))
    told = answers(lambda: next(batches), here())
    found = growing(told[-1], "itertools.cycle batches in ")
    assert (found.kind, found.now, found.bytes) == ("cycle", 40, 3200)


def test_a_running_total() -> None:
    model = nn.Linear(4, 1)
    sums = {"total": torch.zeros(())}

    def step() -> None:
        loss = model(torch.ones(2, 4)).sum()
        sums["total"] = sums["total"] + loss
        loss.backward()

    told = answers(step, here())
    found = growing(told[-1], "sums['total'] in ")
    assert found.kind == "graph"
    assert found.now > found.first
    assert found.times >= 2


def test_a_bounded_deque_and_a_list_that_is_cleared() -> None:
    recent: deque[Any] = deque(maxlen=12)
    some: list[Any] = []

    def step() -> None:
        recent.append(torch.ones(1))
        some.append(torch.ones(1))
        if len(some) == 7:
            some.clear()

    told = answers(step, here(), steps=80)
    paths = [(each.path.split(" ")[0], each.times) for each in (told[-1].growing if told[-1] else [])]
    assert all(times < 2 for name, times in paths if name in ("recent", "some"))


def test_inside_a_generator_a_method_and_a_partial() -> None:
    def stream() -> Iterator[int]:
        handed_out = []
        while True:
            handed_out.append(torch.ones(1))
            yield len(handed_out)

    source, recorder = stream(), Recorder()
    callback = partial(recorder.note)

    def step() -> None:
        next(source)
        callback(torch.ones(1))

    del recorder
    told = answers(step, here())
    found = [each.path.partition(" in ")[0] for each in told[-1].growing]
    assert sorted(found)[:2] == ["callback.history['loss']", "handed_out"]


def test_nothing_is_kept() -> None:
    tensor = torch.ones(1000)
    gone = weakref.ref(tensor)
    kept = [tensor]
    make_step()
    probe = Growth()
    probe.asked_growth(here())
    kept.clear()
    del tensor
    gc.collect()
    assert gone() is None


def test_it_stays_within_its_bounds() -> None:
    many = {number: [number] * 3 for number in range(50)}
    large = [[n] for n in range(200_000)]
    probe = Growth()
    make_step()
    asked(probe, here())
    make_step()
    many[99] = [1]
    large.append([1])
    told: Any = asked(probe, here())
    assert told.objects < 20_000
    assert growing(told, "large in ").now == 200_001


def test_a_dict_of_locals_that_the_script_holds_stays_as_it_is() -> None:
    def train() -> tuple[dict[str, Any], Any]:
        settings, numbers = locals(), []
        for _ in range(30):
            numbers.append(torch.ones(1))
            make_step()
            told = ask()
        return settings, told

    def ask() -> Any:
        return asked(probe, sys._getframe(1))

    probe = Growth()

    settings, _ = train()
    assert set(settings) <= {"ask"}
