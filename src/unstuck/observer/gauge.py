"""The few words of a flight file that are read every half second, without anything heavy imported. Not injected."""

from __future__ import annotations

import mmap
import os
import sys

from unstuck.recorder import layout as at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal

WORKER = at.ROLES.index("worker")
NANO = 1e9


class Gauge:
    """One process's flight file, mapped for reading while the writer runs, hangs, or after it died."""

    __slots__ = ("_heard", "_map", "path", "pid", "records", "records_read", "words")

    def __init__(self, path: str, mapped: mmap.mmap | bytes) -> None:
        self.path = path
        self._map = mapped
        self.words = memoryview(mapped).cast("q")
        self.pid = int(self.words[at.W_PID])
        self.records_read = 0
        self.records: list[object] = []
        self._heard: dict[int, int] = {}

    @classmethod
    def open(cls, path: str) -> Gauge | None:
        """None for a file that is not (yet) whole."""
        try:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            if os.fstat(handle).st_size < at.SIZE:
                return None
            mapped = mmap.mmap(handle, at.SIZE, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            return None
        finally:
            os.close(handle)
        with memoryview(mapped) as raw, raw.cast("q") as words:
            whole = words[at.W_MAGIC] == at.MAGIC and words[at.W_VERSION] == at.VERSION
        if not whole:
            mapped.close()
            return None
        return cls(path, mapped)

    def ask(self, wanted: int) -> None:
        """Put a request into the file of a living process; it is answered at its next seam."""
        try:
            handle = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return
        try:
            os.pwrite(handle, int(self.words[at.W_REQUEST] | wanted).to_bytes(8, sys.byteorder), at.W_REQUEST * 8)
        finally:
            os.close(handle)

    def frozen(self, *, ended: bool = False) -> Gauge:
        """A copy of the last state, which needs neither the file nor the process."""
        raw = bytearray(self._map)
        if ended:
            memoryview(raw).cast("q")[at.W_ENDED] = 1
        copy = Gauge(self.path, bytes(raw))
        copy.records, copy.records_read = self.records, self.records_read
        return copy

    def close(self) -> None:
        self.words.release()
        if isinstance(self._map, mmap.mmap):
            self._map.close()

    def text(self, length: int, offset: int, size: int) -> str:
        raw = bytes(self._map[offset : offset + min(max(length, 0), size)])
        return raw.decode("utf-8", "replace")

    def sibling(self, suffix: str) -> str:
        """Path of a file next to it: records, stacks, signals."""
        return self.path[: -len(at.FLIGHT)] + suffix

    @property
    def progress(self) -> int:
        """Seams passed, and within a batch the sample in work: it changes whenever anything moved."""
        w = self.words
        seams = max(w[at.W_SINCE : at.SINCE_END]), w[at.W_STEP], w[at.W_BACKWARDS], w[at.W_RESTED]
        return hash(
            (*seams, w[at.W_COLLECTIVES], w[at.W_FORMED], w[at.W_SAMPLE_SINCE], w[at.W_SAMPLE], w[at.W_POSITION])
        )

    @property
    def trains(self) -> bool:
        """A training runs here: a loader, a backward pass or an optimizer was used, and not as a worker; or it is one
        of several ranks."""
        w = self.words
        used = w[at.W_LOADERS] or w[at.W_PROGRESS] or w[at.W_FORMING]
        return w[at.W_ROLE] != WORKER and bool(used) and not w[at.W_ENDED]

    @property
    def trained(self) -> bool:
        """The same of a process that may have ended."""
        w = self.words
        return w[at.W_ROLE] != WORKER and bool(w[at.W_LOADERS] or w[at.W_PROGRESS] > w[at.W_ENDED])

    @property
    def phase(self) -> int:
        return at.present(self.words)[0]

    @property
    def p99(self) -> float:
        """Seconds that the present kind of phase takes at the 99th percentile; 0 while there was none."""
        phase = self.phase
        if phase >= at.ENDED:
            return 0.0
        base = at.HISTOGRAMS + phase * at.KIND_WORDS
        return quantile([int(n) for n in self.words[base : base + at.KIND_WORDS]], 0.99)

    @property
    def key(self) -> tuple[int, int]:
        """Of the process: its pid and its start time, which an exec does not change."""
        return self.pid, int(self.words[at.W_START_TICKS])

    @property
    def number(self) -> int:
        """How often the process had replaced itself (exec) before it began this file."""
        return number_of(self.path)

    def alive(self) -> bool:
        """The very process that wrote it still runs, and as the program that wrote it."""
        return self.writer() == "runs"

    def writer(self) -> Literal["runs", "replaced", "gone"]:
        """The process that wrote it; "replaced": it runs on as another program (exec)."""
        fields = stat_fields(self.pid)
        if not fields or int(fields[19]) != self.words[at.W_START_TICKS] or fields[0] in (b"Z", b"X"):
            return "gone"
        # Memory is laid out anew at each exec. Where we may not know how, the kernel says 1 and 0.
        before, now = (self.words[at.W_CODE], self.words[at.W_STACK]), (int(fields[23]), int(fields[25]))
        return "replaced" if min(before) > 1 and min(now) > 1 and before != now else "runs"

    def heard(self) -> dict[int, int]:
        """How often it has handled each signal, by its number."""
        try:
            pipe = os.open(self.sibling(at.HEARD), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return self._heard
        try:
            for number in os.read(pipe, 1 << 16):
                self._heard[number] = self._heard.get(number, 0) + 1
        except OSError:  # nothing there
            pass
        finally:
            os.close(pipe)
        return self._heard


def quantile(kind: list[int], share: float) -> float:
    """Upper bound of a quantile, in seconds, from one kind's words; less than twice the true value."""
    counts = kind[: at.BUCKETS]
    wanted = share * sum(counts)
    if not wanted:
        return 0.0
    below = 0
    for bucket, number in enumerate(counts):
        below += number
        if below >= wanted:
            return min(1 << bucket, kind[at.LONGEST]) / NANO
    return kind[at.LONGEST] / NANO


def number_of(path: str) -> int:
    """The number in the name of a flight file, or of one next to it, made after an exec; 0 of the first."""
    parts = os.path.basename(path).split(".")
    return int(parts[1]) if len(parts) > 2 and parts[1].isdigit() else 0


def one_each(gauges: Iterable[Gauge]) -> list[Gauge]:
    """One file a process, where it replaced itself: the last, unless it is gone and only one before it trained."""
    by_process: dict[tuple[int, int], list[Gauge]] = {}
    for gauge in gauges:
        by_process.setdefault(gauge.key, []).append(gauge)
    chosen = []
    for files in by_process.values():
        files.sort(key=lambda gauge: gauge.number)
        trained = [gauge for gauge in files if gauge.trained]
        chosen.append(files[-1] if not trained or len(files) == 1 or files[-1].alive() else trained[-1])
    return chosen


def stat_fields(pid: int) -> list[bytes]:
    """Fields of /proc/PID/stat from the state on; empty if the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []
