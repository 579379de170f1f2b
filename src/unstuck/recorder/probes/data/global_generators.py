"""Global generators of random numbers (torch's, numpy's, Python's): which were seeded and not drawn from since."""

from __future__ import annotations

import ctypes
import random
import sys

from ... import hiding

STATE, NEXT = 5056, slice(16, 24)  # bytes of the state of torch's own; where the place of the next number in it lies
USED_UP = 624  # numpy and Python begin with all numbers of a Mersenne twister used up; torch with the first
FIRST_WORD = 0x80000000  # of Python's, just seeded


def fresh() -> frozenset[str]:
    """What people call those that are as they were seeded."""
    found = {"torch": _torchs, "numpy": _numpys, "random": _pythons}
    return frozenset(name for name, is_fresh in found.items() if is_fresh())


def _torchs() -> bool:
    with hiding.Hidden():
        state = sys.modules["torch"].default_generator.get_state()
        raw = ctypes.string_at(state.data_ptr(), STATE) if state.numel() == STATE else b""
    return bool(raw) and not any(raw[NEXT])


def _numpys() -> bool:
    made = sys.modules.get("numpy.random")
    state = made.get_state(legacy=False) if made is not None else {}
    return bool(state.get("bit_generator") == "MT19937" and state["state"]["pos"] == USED_UP)


def _pythons() -> bool:
    words = random.getstate()[1]
    return bool(words[0] == FIRST_WORD and words[-1] == USED_UP)
