"""Where an epoch stands, and how a later run goes on from there: the same order, without the batches handed out."""

from __future__ import annotations

import marshal
import random
import sys
import zlib

import torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

VERSION = 1
PARTS: dict[str, type | tuple[type, ...]] = {
    "unstuck": int,
    "done": int,
    "also": list,
    "checksum": int,
    "random": (dict, type(None)),
    "loader": dict,
}
UNHASHED = 2  # version of marshal whose bytes depend on nothing but the values


class Progress:
    """Of one epoch. `resumed` is the state of an earlier run, whose batches are not handed out again."""

    def __init__(self, resumed: dict[str, Any] | None = None) -> None:
        self.resumed = resumed
        self.drawn = self.done = 0
        """Batches drawn from the sampler; those below `done` were handed out,"""
        self.also: set[int] = set()
        """and these, where the order is free."""
        self._marks: dict[int, int] = {0: 0}
        """By number of batches drawn: a checksum of all of them."""
        self._numbers: dict[int, int] = {}
        """By torch's number of a batch: how many were drawn before it."""
        self._random: dict[str, Any] | None = None
        self.ended = False

    def draw(self, number: int, draw: Callable[[], Any], generator: Any) -> Any:
        """The next batch of indices, for torch's batch of this number."""
        if self._random is None:
            if self.resumed is not None and self.resumed["random"] is not None:
                self._wind_forward(draw, generator)
            else:
                self._random = random_states(generator)
        while self.resumed is not None and self.drawn in self.resumed["also"]:
            self._drew(draw())
            self.handed_out(self.drawn - 1)
        self._numbers[number] = self.drawn
        index = draw()
        self._drew(index)
        return index

    def _drew(self, index: Any) -> None:
        self._marks[self.drawn + 1] = checksum(index, self._marks[self.drawn])
        self.drawn += 1

    def handed_out(self, drawn_before: int) -> None:
        self.also.add(drawn_before)
        while self.done in self.also:
            self.also.remove(self.done)
            del self._marks[self.done]
            self.done += 1

    def handed_out_number(self, number: int) -> None:
        before = self._numbers.pop(number, None)
        if before is not None:
            self.handed_out(before)

    def _wind_forward(self, draw: Callable[[], Any], generator: Any) -> None:
        state: Any = self.resumed
        before = random_states(None)
        set_random_states(state["random"], generator)
        self._random = state["random"]
        try:
            for _ in range(state["done"]):
                self._drew(draw())
                self.handed_out(self.drawn - 1)
        except StopIteration:
            pass
        finally:
            set_random_states(before, None)
        if self.done != state["done"] or self._marks[self.done] != state["checksum"]:
            raise ValueError(
                "the state cannot be resumed: the sampler draws other samples than when the state was saved. It must "
                "get its randomness from torch, numpy or random, and the same seed or epoch (set_epoch) as then"
            )

    def state(self, about: dict[str, Any]) -> dict[str, Any]:
        fresh = self.ended or not (self._random or self.done)
        return {
            "unstuck": VERSION,
            "done": 0 if fresh else self.done,
            "also": [] if fresh else sorted(self.also),
            "checksum": 0 if fresh else self._marks.get(self.done, 0),
            "random": None if fresh else self._random,
            "loader": about,
        }


def checksum(index: Any, before: int) -> int:
    try:
        written = marshal.dumps(index, UNHASHED)
    except ValueError:
        written = repr(index).encode(errors="replace")
    return zlib.crc32(written, before)


def random_states(generator: Any) -> dict[str, Any]:
    """What a sampler can draw from, in types that any checkpoint can hold."""
    version, numbers, gauss = random.getstate()
    states: dict[str, Any] = {"torch": torch.get_rng_state(), "random": [version, list(numbers), gauss]}
    if generator is not None:
        states["generator"] = generator.get_state()
    if "numpy" in sys.modules:
        name, keys, *rest = sys.modules["numpy"].random.get_state()
        states["numpy"] = [name, keys.tolist(), *rest]
    return states


def set_random_states(states: dict[str, Any], generator: Any) -> None:
    torch.set_rng_state(states["torch"])
    version, numbers, gauss = states["random"]
    random.setstate((version, tuple(numbers), gauss))
    if generator is not None and "generator" in states:
        generator.set_state(states["generator"])
    if "numpy" in states:
        import numpy

        name, keys, *rest = states["numpy"]
        numpy.random.set_state((name, numpy.array(keys, dtype="uint32"), *rest))


def about(loader: Any) -> dict[str, Any]:
    """By which a state is recognised as that of another dataset."""
    return {
        "dataset": f"{type(loader.dataset).__module__}.{type(loader.dataset).__qualname__}",
        "samples": _length(loader.dataset),
        "sampler": type(loader.batch_sampler if loader.batch_sampler is not None else loader.sampler).__qualname__,
        "batch_size": loader.batch_size,
        "drop_last": loader.drop_last,
        "batches": _length(loader),
    }


def check(state: Any, loader: Any) -> None:
    whole = isinstance(state, dict) and all(isinstance(state.get(name), kinds) for name, kinds in PARTS.items())
    if not whole or state["unstuck"] != VERSION:
        raise ValueError("this is not a state of unstuck.DataLoader: pass what state_dict() returned")
    then, now = state["loader"], about(loader)
    changed = [f"{name} was {then.get(name)}, is {now[name]}" for name in now if then.get(name) != now[name]]
    if changed:
        raise ValueError(f"the state is of another loader and cannot be resumed: {'; '.join(changed)}")
    if isinstance(loader.dataset, torch.utils.data.IterableDataset) and not getattr(loader, "in_order", True):
        raise ValueError("a stream with in_order=False cannot be resumed: which items were handed out is not known")
    if state["random"] is not None and "generator" in state["random"] and loader.generator is None:
        raise ValueError("the state is of a loader with a generator: pass generator=torch.Generator() to this one too")


def _length(of: Any) -> int | None:
    try:
        return len(of)
    except (TypeError, NotImplementedError):
        return None
