"""What a forked process of the script's own sends first, as prints: do its siblings send the same?

Forked processes begin with their parent's random numbers, and go on alike. Prints are made of the bytes of tensors and
arrays; the states of the generators, before and after, tell whether anything was drawn meanwhile.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import FrameType, FunctionType, MethodType
from typing import Any
from zlib import crc32

from ... import hiding, journal, objects, tensors, user_code
from ...probe import Probe
from ...records import Site
from ...records.loaders import FirstSent
from ..object_walk import ObjectWalk, held_by
from . import dataset_memory

SENT = 8  # messages
LOOKED_AT = 64  # messages, small ones too
SMALL = 64  # bytes: what says how it goes, but gives no data
PRINTED, MOST_PARTS = 1 << 12, 8  # bytes of a tensor, and tensors of a message
NUMBERS = 16  # of a list
MOST_OBJECTS, DEPTH, MOST_SECONDS = 400, 5, 0.002  # in which generators are looked for
POOLS = ("multiprocessing/pool.py", "concurrent/futures/process.py")


class FirstSentProbe(Probe):
    name = "first sent"

    def forget(self) -> None:
        self._prints: list[int] = []
        self._before: dict[str, Any] = {}
        self._looked_at = 0

    def child_sends(self, thing: Any, pickled: Any, process: Any, left: list[int]) -> None:
        """`left`: is set to 0 when there is nothing more to see."""
        self._looked_at += 1
        found = print_of(thing, pickled)
        if found is not None:
            if not self._prints:
                self._before = dict(states(process))
            self._prints.append(found)
        if self._looked_at >= LOOKED_AT or len(self._prints) >= SENT:
            left[0] = 0
        if len(self._prints) == SENT:
            drawn = [name for name, state in states(process) if self._before.get(name) != state]
            site = _site(process)
            journal.write(FirstSent(parent=os.getppid(), site=site, prints=self._prints, drawn=drawn))


def print_of(thing: Any, pickled: Any) -> int | None:
    """Of the tensors, arrays and lists of numbers in a message; where there is none, of the message as it is sent. None
    for a small one."""
    found = size = 0
    for number, leaf in enumerate(tensors.Walk(deep=5).leaves(thing)):
        if number >= tensors.NODES or size > PRINTED * MOST_PARTS:
            break
        lies = dataset_memory.extent(leaf.value)
        if lies is not None:
            read = dataset_memory.read(lies, PRINTED)
        elif (type(leaf.value) is list or type(leaf.value) is tuple) and len(leaf.value) * 8 >= SMALL:
            read = repr([value for value in leaf.value[:NUMBERS] if _is_number(value)]).encode().ljust(SMALL)
        else:
            continue
        found, size = crc32(read, found), size + len(read)
    if size:
        return found if size >= SMALL else None
    return crc32(memoryview(pickled)[: 1 << 16]) if len(pickled) >= SMALL else None


def _is_number(value: Any) -> bool:
    return type(value) is float or (type(value) is int and value.bit_length() < 64)


# --- generators of random numbers ---------------------------------------------------------------------------------


def states(process: Any) -> Iterator[tuple[str, Any]]:
    """(how a person writes it, its state) of the global ones, and of those in what the process was given."""
    numpy, random, torch = (sys.modules.get(name) for name in ("numpy.random.mtrand", "random", "torch"))
    known = [("np.random", getattr(numpy, "_rand", None)), ("random", getattr(random, "_inst", None))]
    known.append(("torch", getattr(torch, "default_generator", None)))
    held = ObjectWalk(held_by, MOST_OBJECTS, DEPTH, MOST_SECONDS).over([("", process)])
    for name, thing in (*known, *held):
        state = _state(thing)
        if state is not None:
            yield name.replace("._args", "args").lstrip("."), state


def _state(thing: Any) -> Any:
    """Of a generator of the libraries themselves; None for anything else."""
    kind, numpy = type(thing), sys.modules.get("numpy") if "numpy.random" in sys.modules else None
    if kind is getattr(sys.modules.get("random"), "Random", None):
        return hash(thing.getstate())
    if kind is sys.modules["torch"]._C.Generator:
        with hiding.Hidden():
            lies = dataset_memory.extent(thing.get_state())
        return crc32(dataset_memory.read(lies)) if lies is not None else None
    if numpy is None or not (kind is numpy.random.Generator or kind is numpy.random.RandomState):
        return None
    bits = thing._bit_generator  # its lock may have been taken when the process was forked: this does not ask for it
    return repr(bits.state) if objects.module_of(type(bits)).startswith("numpy.") else None


def _site(process: Any) -> Site | None:
    """The function that the process was made to run; of a pool, the one it was asked for last."""
    given = objects.instance_dict(process) or {}
    own = objects.class_dict(type(process)).get("run")
    roots = [given.get("_target"), own]
    roots += [value for frame in _frames() for value in objects.locals_of(frame).values()]
    walk = ObjectWalk(held_by, MOST_OBJECTS, DEPTH, MOST_SECONDS).over(("", root) for root in roots)
    made = (part.__func__ if type(part) is MethodType else part for _, part in walk)
    sites = (user_code.code_site(part) for part in made if type(part) is FunctionType)
    return next((site for site in sites if site is not None), None)


def _frames() -> Iterator[FrameType]:
    """In which a pool's worker does what it was asked for."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.endswith(POOLS):
            yield frame
        frame = frame.f_back
