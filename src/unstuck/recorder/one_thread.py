"""Keeps what we compute on one thread, through the OpenMP that torch itself uses.

A pool of threads that is not there before must not be started by us: a forked worker has only its name, and waits for
it for ever. `torch.set_num_threads` would do it too, and leave other settings behind: this is one number of the calling
thread, put back as it was.
"""

from __future__ import annotations

import os
import sys

from . import guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LIBRARY = "libtorch_cpu.so"
_set: Callable[[int], object] | None = None
_looked = False


def begin() -> int:
    """From here on one thread; gives how many there were, 0 if nothing was changed."""
    torch = sys.modules.get("torch")
    if torch is None:
        return 0
    number = int(torch.get_num_threads())  # asked first: the first question of a thread sets the number
    if number < 2:
        return 0
    setting = _set if _looked else _find(torch.__file__ or "")
    if setting is None:
        return 0
    setting(1)
    return number


def end(number: int) -> None:
    if number and _set is not None:
        _set(number)


def _find(package: str) -> Callable[[int], object] | None:
    """Looked up among what torch's own library needs: there may be other OpenMPs in the process."""
    global _set, _looked
    _looked = True
    try:
        import ctypes

        library = ctypes.PyDLL(os.path.join(os.path.dirname(package), "lib", LIBRARY))
        function = library.omp_set_num_threads
        function.argtypes, function.restype = [ctypes.c_int], None
        _set = function
    except (OSError, AttributeError) as fault:
        guard.off("one thread", fault)
    return _set
