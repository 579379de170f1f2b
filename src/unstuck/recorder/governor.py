"""Keeps what all probes together cost within one budget: measures every call, and allows a dear one only where the
time for it is earned."""

from __future__ import annotations

from _thread import _local
from time import monotonic, thread_time

from . import flight, hiding, one_thread, resting

SHARE, CALM_SHARE = 0.005, 0.001
"""Of the run's time, for all probes together; and of the time in which the hooks rest, for nothing stands out."""
ADVANCE, RESERVE = 0.1, 0.05
"""Seconds that may be spent before they are earned: the first steps tell the most. And what is kept for those after the
first 64: how a training ends tells as much as how it begins."""
LOADING = 0.4
"""… where a GPU is used: the first use of each kind of its kernels loads it."""
LATER = 0.015
"""Seconds more for each doubling of the number of steps after the first 64: a short run has an end too."""
PORTIONS = {
    "learning": 0.75, "steep": 0.25, "updates": 0.1, "data": 0.3, "aliases": 0.3, "fingerprints": 0.2, "copies": 0.2,
}  # fmt: skip
"""Of that, the most that one probe may take; the others may take all of it."""
KEPT = {"steep": 0.1, "updates": 0.1, "observed": 0.1}
"""Of that, what is kept for a probe, or a part of one, from the first time it asks: what the first steps cost on a busy
machine must not blind it. A step that breaks comes without a warning; whether updates undo each other is seen in pairs
of steps only; and a step observed from its modules costs little, but only several of them prove anything."""


class Governor:
    """What was spent, in all and by probe, in seconds of processor time."""

    __slots__ = ("_asked", "_earned", "by_probe", "loading", "spent")

    def __init__(self) -> None:
        self.spent = self._asked = self._earned = 0.0
        self.by_probe: dict[str, float] = {}
        self.loading = 0.0

    def allows(self, probe: str = "") -> bool:
        """There is time left for a dear call."""
        now = monotonic()
        self._earned += (CALM_SHARE if resting.rests() else SHARE) * (now - (self._asked or now))
        self._asked = now
        doublings = flight.steps().bit_length() - 7
        later = RESERVE + LATER * doublings if doublings >= 0 else 0.0
        earned = ADVANCE + self.loading + later + self._earned
        own = self.by_probe.setdefault(probe, 0.0) if probe in KEPT else self.by_probe.get(probe, 0.0)
        kept = {name: share * earned - self.by_probe[name] for name, share in KEPT.items() if name in self.by_probe}
        if kept.get(probe, 0.0) > 0:
            return True
        left = earned - self.spent - sum(max(seconds, 0.0) for seconds in kept.values())
        return left > 0 and own <= PORTIONS.get(probe, 1.0) * earned

    def uses_gpu(self) -> None:
        self.loading = LOADING

    def add(self, probe: str, seconds: float) -> None:
        self.spent += seconds
        flight.state[flight.OURS] += int(seconds * 1e9)
        self.by_probe[probe] = self.by_probe.get(probe, 0.0) + seconds

    def charge(self, account: str, instead_of: str, seconds: float) -> None:
        """What is counted as one probe's goes to another account."""
        self.by_probe[account] = self.by_probe.get(account, 0.0) + seconds
        self.by_probe[instead_of] = self.by_probe.get(instead_of, 0.0) - seconds


_open = _local()
"""Of each thread: the innermost `Reading` that is open in it."""


class LeftOut(hiding.Hidden):
    """While this is open, what is done is unseen, and counted for nobody: modules that are loaded, once."""

    __slots__ = ("_began", "_outer")

    def __enter__(self) -> LeftOut:
        self._began = thread_time()
        self._outer: Reading | None = getattr(_open, "reading", None)
        super().__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        super().__exit__(*raised)
        if self._outer is not None:
            self._outer.counted_from += thread_time() - self._began


class Reading(LeftOut):
    """While this is open, what is done is counted, runs on one thread, and is seen by no compiler and no mode. Where
    one is open already, what is done in this one is not counted there once more."""

    __slots__ = ("_threads", "counted_from")

    def __enter__(self) -> Reading:
        super().__enter__()
        self.counted_from = self._began
        _open.reading = self
        self._threads = one_thread.begin()
        return self

    def __exit__(self, *raised: object) -> None:
        one_thread.end(self._threads)
        self.spent_by("")
        _open.reading = self._outer
        super().__exit__(*raised)

    def spent_by(self, probe: str) -> None:
        """What was spent since the last such call goes to its account."""
        now = thread_time()
        governor.add(probe, now - self.counted_from)
        self.counted_from = now


governor = Governor()
allows = governor.allows
