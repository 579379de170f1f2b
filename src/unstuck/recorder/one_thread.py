"""Keeps what we compute on one thread, through the OpenMP that torch itself uses.

A pool of threads that is not there before must not be started by us: a forked worker has only its name, and waits for
it forever. `torch.set_num_threads` would do it too, and leave other settings behind: this is one number of the calling
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


class OneThread:
    """The setting of the OpenMP in use; looked up once."""

    __slots__ = ("_looked", "_set")

    def __init__(self) -> None:
        self._set: Callable[[int], object] | None = None
        self._looked = False

    def begin(self) -> int:
        """From here on one thread; gives how many there were, 0 if nothing was changed."""
        torch = sys.modules.get("torch")
        if torch is None:
            return 0
        number = int(torch.get_num_threads())  # asked first: the first question of a thread sets the number
        if number < 2:
            return 0
        if not self._looked:
            self._find(torch.__file__ or "")
        if self._set is None:
            return 0
        self._set(1)
        return number

    def end(self, number: int) -> None:
        if number and self._set is not None:
            self._set(number)

    def _find(self, package: str) -> None:
        """Looked up among what torch's own library needs: there may be other OpenMPs in the process."""
        self._looked = True
        try:
            import ctypes

            library = ctypes.PyDLL(os.path.join(os.path.dirname(package), "lib", LIBRARY))
            function = library.omp_set_num_threads
            function.argtypes, function.restype = [ctypes.c_int], None
            self._set = function
        except (OSError, AttributeError) as fault:
            guard.off("one thread", fault)


_one = OneThread()
begin, end = _one.begin, _one.end
