"""The same training twice in one process, with and without our hooks: `python -m bench.twins KIND BLOCKS` prints JSON.

Nothing is patched between blocks, which would have the interpreter specialise its code anew. Instead each training uses
copies of its own of what is hooked: torch's loader module, torch.autograd, `Tensor.backward` and the loop itself. So
they differ in our hooks alone. `null` as KIND hooks neither: what it shows is the bench's own error.
"""

from __future__ import annotations

import importlib.util
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

from unstuck.recorder import guard, start

WARM, COUNTED = 16, 96
"""Steps of a block that are not counted, and that are."""
FIRST_SECONDS, FIRST_STEPS = 45.0, 60_000
"""Of the hooked training, before the first block: what is spent in advance is spent, the first losses are all read, and
in long steps too the hooks rest."""
LENGTHS = {"1 ms": 1e-3, "3 ms": 3e-3, "10 ms": 1e-2}
EVERY_FETCH = 8
"""Of so many batches one is timed where it is fetched."""
CALIBRATING = 32
"""Steps whose median decides how wide the model is that takes so many milliseconds a step on this machine."""


def main() -> None:
    kind, blocks = sys.argv[1], int(sys.argv[2])
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    twins = Twins(kind)
    with tempfile.TemporaryDirectory() as folder:
        from unstuck.recorder import flight

        start.start(folder)
        made = {yes: twins.steps(yes) for yes in random.sample((True, False), 2)}
        for steps in made.values():  # in this order too: what is made later lies elsewhere
            next(steps)
        hooked, plain = made[True], made[False]
        away = Away()
        first(hooked, plain, 1000 if kind == "fetch" else FIRST_STEPS, away)
        unsampled = kind == "fetch" or not guard.installed()
        state = [0] * 16 if unsampled else flight.state  # no step is counted there, so none is sampled
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


def _block(
    steps: Iterator[None], state: list[int], full: int, since_sampled: list[int], counted: int = COUNTED
) -> Iterator[tuple[int, float]]:
    clock = time.perf_counter_ns
    before = clock()
    for number in range(WARM + counted):
        since_sampled[0] = 0 if state[full] else since_sampled[0] + 1
        next(steps)
        now = clock()
        if number >= WARM:
            yield since_sampled[0], (now - before) / 1e9
        before = clock()


class Twins:
    """Copies of torch's own code, taken before anything is hooked."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._copies = {yes: Copies() for yes in (True, False)}
        self._size: Any = self._wide(LENGTHS[kind]) if kind in LENGTHS else 32 if kind == "fetch" else 1

    def steps(self, hooked: bool) -> Iterator[None]:
        copies = self._copies[hooked]
        if hooked:
            copies.hook({"fetch": "fetch", "null": ""}.get(self._kind, "step"))
        make = _own_code(wide if self._kind in LENGTHS else small)
        return iter(make(self._size, copies.loader.DataLoader, copies.backward, lambda each: _only_ours(each, hooked)))

    def _wide(self, seconds: float) -> Wide:
        """So wide that a step takes so long."""
        width, takes, copies = 96, 0.0, self._copies[False]
        while takes < seconds * 0.95:
            width += max(8, int(width * min(0.2, (seconds / takes) ** 0.5 - 1 if takes else 0)) // 8 * 8)
            steps = wide(Wide(width), copies.loader.DataLoader, copies.backward, lambda _: None)
            takes = statistics.median(seconds for _, seconds in _block(steps, [0], 0, [0], CALIBRATING))
        return Wide(width)


class Copies:
    """One copy of what is hooked: the loader's module, torch.autograd and `Tensor.backward`."""

    def __init__(self) -> None:
        import torch

        self.loader = _copy("torch.utils.data.dataloader")
        self._fetch = _copy("torch.utils.data._utils.fetch")
        utils = ModuleType("utils")
        utils.__dict__.update(torch.utils.data._utils.__dict__, fetch=self._fetch)
        self.loader.__dict__["_utils"] = utils
        self._autograd = ModuleType("autograd")
        self._autograd.__dict__.update(torch.autograd.__dict__)
        seen = ModuleType("torch")
        seen.__dict__["autograd"] = self._autograd
        original = torch.Tensor.backward
        self.backward: Any = FunctionType(
            original.__code__.replace(), {**original.__globals__, "torch": seen}, "backward"
        )
        self.backward.__defaults__ = original.__defaults__

    def hook(self, what: str) -> None:
        """In the place of torch's own. Noting samples is measured for itself: workers do it."""
        guard.remove_all()
        if what == "fetch":
            start.install_seam("torch.utils.data._utils.fetch", self._fetch)
            sys.modules["unstuck.recorder.hooks.fetch"].fetching.begin_worker()
        elif what == "step":
            start.install_seam("torch.utils.data.dataloader", self.loader)
            start.install_seam("torch.autograd", self._autograd)
            start.install_seam("torch.optim.optimizer", sys.modules["torch.optim.optimizer"])


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


class Wide:
    """What both trainings share: where a model's weights happen to lie makes its steps longer or shorter than those of
    another by more than a hook does."""

    def __init__(self, width: int) -> None:
        import torch
        from torch import nn

        self.data = torch.utils.data.TensorDataset(torch.randn(4096, width), torch.randint(0, 10, (4096,)))
        layers = (nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
        self.model = nn.Sequential(*layers)
        self.state = torch.optim.Adam(self.model.parameters()).state


def wide(shared: Wide, loader: Any, backward: Any, only_ours: Any) -> Iterator[None]:
    import torch
    from torch import nn

    model = shared.model
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5)
    optimizer.state = shared.state
    only_ours(optimizer)
    while True:
        for x, y in loader(shared.data, batch_size=32, shuffle=True):
            optimizer.zero_grad()
            backward(nn.functional.cross_entropy(model(x), y))
            optimizer.step()
            yield


if __name__ == "__main__":
    main()
