"""Reading a loader's data without a trace: copies of its samplers and generators, random numbers put back."""

from __future__ import annotations

import copy
import random
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def own_copy(thing: Any, copies: dict[int, Any]) -> Any:
    """A copy with random generators of its own; for a sampler, of the samplers inside it too. The data stay shared.

    `copies` are those made so far: what a loader and its sampler share, their copies share."""
    if id(thing) not in copies:
        copies[id(thing)] = _copied(thing, copies)
    return copies[id(thing)]


def _copied(thing: Any, copies: dict[int, Any]) -> Any:
    torch = sys.modules["torch"]
    if thing is None or isinstance(thing, (int, float, str, bool, list, tuple, dict, range)):
        return thing
    if isinstance(thing, torch.Generator):
        generator = torch.Generator(device=thing.device)
        generator.set_state(thing.get_state())
        return generator
    try:
        twin = copy.copy(thing)
        inside = vars(twin)
    except Exception:  # it cannot be copied: then the original
        return thing
    if twin is thing:
        return thing
    for name, value in list(inside.items()):
        if isinstance(value, (torch.Generator, torch.utils.data.Sampler)):
            inside[name] = own_copy(value, copies)
        elif isinstance(value, random.Random) or type(value).__module__.startswith("numpy.random"):
            inside[name] = copy.deepcopy(value)
        elif type(value) in (list, dict, set):  # it may be shuffled in place
            inside[name] = value.copy()
    return twin


class SameRandom:
    """Whatever is drawn inside, the script's random numbers go on afterwards as if nothing had been drawn."""

    def __enter__(self) -> None:
        torch, numpy = sys.modules["torch"], sys.modules.get("numpy")
        self._python, self._torch = random.getstate(), torch.get_rng_state()
        self._cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
        self._numpy = None if numpy is None else numpy.random.get_state()

    def __exit__(self, *_: object) -> None:
        torch = sys.modules["torch"]
        random.setstate(self._python)
        torch.set_rng_state(self._torch)
        if self._cuda is not None:
            torch.cuda.set_rng_state_all(self._cuda)
        if self._numpy is not None:
            sys.modules["numpy"].random.set_state(self._numpy)
