"""Keeps what is dear within its budget: measures what it took, and allows a reading only where that is paid for."""

from __future__ import annotations

from time import monotonic, thread_time

from . import flight, hiding, one_thread

SHARE = 0.005
"""Of the run's time, for all readings together."""
ADVANCE = 0.15
"""Seconds that may be spent before they are earned: the first steps tell the most."""
LOADING = 0.4
"""… where a GPU is used: the first use of each kind of its kernels loads it."""
LATER = 0.015
"""Seconds more for each doubling of the number of steps after the first 64: a short run has an end too."""
spent = 0.0
loads = 0.0
"""Seconds more in advance, once something was on a GPU."""
_began = 0.0


def allows() -> bool:
    """There is time left for a reading, and nobody listens to it."""
    global _began
    if hiding.overheard():
        return False
    if not _began:
        _began = monotonic()
    advance = ADVANCE + loads + LATER * max(0, flight.steps.bit_length() - 7)
    return spent < advance + SHARE * (monotonic() - _began)


class Reading(hiding.Uncompiled):
    """Counts the processor time of what is done inside, on one thread, which is not for the compiler to see."""

    __slots__ = ("_from", "_threads")

    def __enter__(self) -> None:
        self._from = thread_time()
        super().__enter__()
        self._threads = one_thread.begin()

    def __exit__(self, *raised: object) -> None:
        global spent
        one_thread.end(self._threads)
        super().__exit__(*raised)
        spent += thread_time() - self._from


def cost() -> dict[str, float]:
    lasted = monotonic() - _began if _began else 0.0
    return {"seconds": round(spent, 6), "share": round(spent / lasted, 6) if lasted > 0 else 0.0}
