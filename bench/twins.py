"""The same training twice in one process, with and without our hooks: `python -m bench.twins KIND BLOCKS` prints JSON.

Nothing is patched between blocks, which would have the interpreter specialise its code anew. Instead the training
without hooks uses twins of what is hooked: a second copy of torch's loader module, of `Tensor.backward` and of the loop
itself, all made of torch's own code. Both trainings have a copy each, so that they differ in our hooks alone.
"""

from __future__ import annotations

import importlib.util
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

WARM, COUNTED = 16, 96
"""Steps of a block that are not counted, and that are."""
FIRST_SECONDS, FIRST_STEPS = 15.0, 60_000
"""Of the hooked training, before the first block: what is spent in advance is spent, the first losses are all read."""
EVERY_FETCH = 8
"""Of so many batches one is timed where it is fetched."""
WIDTHS = {"1 ms": 220, "3 ms": 480, "10 ms": 950}
"""Of a model of three layers, at which a step takes about so long on one core."""


def main() -> None:
    kind, blocks = sys.argv[1], int(sys.argv[2])
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    twins = Twins()
    with tempfile.TemporaryDirectory() as folder:
        from unstuck.recorder import flight, guard, start

        start.start(folder)
        if kind == "fetch":  # noting samples is measured for itself: workers do it, or main where there are none
            guard.remove_all()
            name = "torch.utils.data._utils.fetch"
            start.install_seam(name, sys.modules[name])
            sys.modules["unstuck.recorder.hooks.fetch"].fetching.begin_worker()
        else:
            guard.remove("fetch")
        made = {yes: twins.steps(kind, yes) for yes in random.sample((True, False), 2)}
        for steps in made.values():  # in this order too: what is made later lies elsewhere
            next(steps)
        hooked, plain = made[True], made[False]
        away = Away()
        first(hooked, plain, 1000 if kind == "fetch" else FIRST_STEPS, away)
        state = [0] * 16 if kind == "fetch" else flight.state  # no step is counted there, so none is sampled
        measured = [pair(hooked, plain, state, away) for _ in range(blocks)]
        guard.remove_all()
    print(json.dumps(measured))


class Away:
    """Time spent in the training without hooks. The recorder must not take it for time of the other: it rations what it
    does by how long steps take."""

    def __init__(self) -> None:
        self._spent = 0
        self.since_sampled = [0]
        """Steps of the other, since one of them was sampled."""
        from unstuck.recorder import governor, resting
        from unstuck.recorder.hooks import backward

        for module in (backward, resting):
            self._correct(module, "monotonic_ns", 1.0)
        self._correct(governor, "monotonic", 1e-9)

    def _correct(self, module: ModuleType, name: str, scale: float) -> None:
        clock = getattr(time, name)
        setattr(module, name, lambda: clock() - self._spent * scale)

    def during(self, action: Callable[[], object]) -> None:
        began = time.monotonic_ns()
        action()
        self._spent += time.monotonic_ns() - began


def first(hooked: Iterator[None], plain: Iterator[None], most: int, away: Away) -> None:
    until = time.monotonic() + FIRST_SECONDS
    for number in range(most):
        next(hooked)
        if number % 8 == 0:
            away.during(lambda: next(plain))
        if time.monotonic() > until and number > 256:
            break


def pair(hooked: Iterator[None], plain: Iterator[None], state: list[int], away: Away) -> dict[str, list[float]]:
    """Seconds of the steps of a block: with hooks by how many came since one was sampled, for what is done now and then
    is done at such numbers; and without."""
    from unstuck.recorder import flight

    def block_hooked() -> None:
        for number, seconds in _block(hooked, state, flight.FULL, away.since_sampled):
            is_sampled = not number or state[flight.FULL]
            place = number if state is flight.state else number % EVERY_FETCH
            found.setdefault(f"{'sampled' if is_sampled else 'ordinary'} {place}", []).append(seconds)

    def block_plain() -> None:
        found["plain"] = [seconds for _, seconds in _block(plain, [0], 0, [0])]

    found: dict[str, list[float]] = {}
    while state[flight.FULL]:  # what sampled steps have in place would be in the way of both
        next(hooked)
    for block in random.sample((block_hooked, block_plain), 2):
        if block is block_plain:
            away.during(block)
        else:
            block()
        while state[flight.FULL]:
            next(hooked)
    return found


def _block(steps: Iterator[None], state: list[int], full: int, since_sampled: list[int]) -> Iterator[tuple[int, float]]:
    clock = time.perf_counter_ns
    before = clock()
    for number in range(WARM + COUNTED):
        since_sampled[0] = 0 if state[full] else since_sampled[0] + 1
        next(steps)
        now = clock()
        if number >= WARM:
            yield since_sampled[0], (now - before) / 1e9
        before = clock()


class Twins:
    """Copies of torch's own code, taken before anything is hooked."""

    def __init__(self) -> None:
        import torch

        self._torch = torch
        self._loader = _copy("torch.utils.data.dataloader")
        utils = ModuleType("utils")
        utils.__dict__.update(torch.utils.data._utils.__dict__, fetch=_copy("torch.utils.data._utils.fetch"))
        self._loader.__dict__["_utils"] = utils
        self._plain_backward = torch.autograd.backward

    def steps(self, kind: str, hooked: bool) -> Iterator[None]:
        torch = self._torch
        loader: Any = torch.utils.data.DataLoader if hooked else self._loader.DataLoader
        make = _own_code(small if kind in ("small", "fetch") else wide)
        backward = self._backward(hooked)
        size = 32 if kind == "fetch" else WIDTHS.get(kind, 1)
        return iter(make(size, loader, backward, lambda optimizer: _only_ours(optimizer, hooked)))

    def _backward(self, hooked: bool) -> Any:
        """A copy of `Tensor.backward` that calls what `torch.autograd.backward` is then, or torch's own."""
        torch = ModuleType("torch")
        if hooked:
            torch.__dict__.update(autograd=self._torch.autograd)
        else:
            torch.__dict__.update(autograd=ModuleType("autograd"))
            torch.autograd.__dict__.update(self._torch.autograd.__dict__, backward=self._plain_backward)
        original = self._torch.Tensor.backward
        made = FunctionType(original.__code__.replace(), {**original.__globals__, "torch": torch}, "backward")
        made.__defaults__ = original.__defaults__
        return made


def _only_ours(optimizer: Any, hooked: bool) -> None:
    """Our hook after a step is one of all optimizers: have it hear of the hooked training's only."""
    module = sys.modules["torch.optim.optimizer"]
    if hooked and module._global_optimizer_post_hooks:
        _, after = module._global_optimizer_post_hooks.popitem()
        optimizer.register_step_post_hook(after)


def _copy(name: str) -> ModuleType:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _own_code(function: Any) -> Any:
    made = FunctionType(function.__code__.replace(), function.__globals__, function.__name__)
    made.__defaults__ = function.__defaults__
    return made


def small(batch: int, loader: Any, backward: Any, only_ours: Any) -> Iterator[None]:
    """An endless training of small steps; each `next` is one."""
    import torch
    from torch import nn

    class Numbers(torch.utils.data.Dataset[Any]):  # type: ignore[misc]  # mypy does not follow torch
        rows = torch.randn(64, 16)

        def __len__(self) -> int:
            return 100_000 * batch

        def __getitem__(self, index: int) -> Any:
            return self.rows[index & 63]

    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    only_ours(optimizer)
    while True:
        for x in loader(Numbers(), batch_size=batch):
            optimizer.zero_grad()
            backward(model(x).sum())
            optimizer.step()
            yield


def wide(width: int, loader: Any, backward: Any, only_ours: Any) -> Iterator[None]:
    import torch
    from torch import nn

    data = torch.utils.data.TensorDataset(torch.randn(4096, width), torch.randint(0, 10, (4096,)))
    model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5)
    only_ours(optimizer)
    while True:
        for x, y in loader(data, batch_size=32, shuffle=True):
            optimizer.zero_grad()
            backward(nn.functional.cross_entropy(model(x), y))
            optimizer.step()
            yield


if __name__ == "__main__":
    main()
