"""What the user wants done about bad samples, and the words that the training shares with each worker."""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from multiprocessing import reduction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TASK, POSITION, PHASE, SINCE, STOP = range(5)  # words of a worker: order in work, sample, phase, since when; end now
STARTING, IDLE, FETCHING, COLLATING, SENDING = range(5)  # phases
UNKNOWN = -1  # position: the dataset fetches the whole batch at once
STACK_AT = mmap.PAGESIZE  # where in the same file the worker's stack is written
HERE = os.path.dirname(os.path.abspath(__file__))
MOST_STACK = 1 << 16  # bytes of it that are read


@dataclass(frozen=True)
class Care:
    """The settings of a loader; `unstuck.DataLoader` says what they mean."""

    sample_timeout: float | None = None
    on_bad_sample: str = "raise"
    retries: int = 1
    max_restarts: int = 100
    max_bad: float | int = 0.01

    @property
    def keeps_going(self) -> bool:
        return self.on_bad_sample != "raise"


class Nothing:
    """Stands for a sample that is left out, and for a batch of which nothing is left."""

    def __reduce__(self) -> str:
        return "NOTHING"


NOTHING = Nothing()


class Words:
    """A page of memory that a worker and the training share, and a file behind it for the worker's stack: readable
    while the worker hangs or after it died. It does not count against /dev/shm."""

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("unstuck-worker")
        os.ftruncate(self.descriptor, STACK_AT)
        self._open()

    def _open(self) -> None:
        self._map = mmap.mmap(self.descriptor, STACK_AT)
        self.words = memoryview(self._map).cast("q")

    def clear(self) -> None:
        """For the next worker."""
        os.ftruncate(self.descriptor, STACK_AT)
        for word in (TASK, POSITION, PHASE, SINCE, STOP):
            self.words[word] = 0

    def stack(self) -> str:
        """Down to where the user's code was called."""
        lines, ours = [], False
        for line in os.pread(self.descriptor, MOST_STACK, STACK_AT).decode(errors="replace").strip("\0").splitlines():
            ours = HERE in line or (ours and line.startswith("  "))
            if not ours:
                lines.append(line)
        return "\n".join(lines).strip()

    def close(self) -> None:
        self.words.release()
        self._map.close()
        os.close(self.descriptor)

    def __reduce__(self) -> Any:
        return _reopened, (Descriptor(self.descriptor),)


def _reopened(descriptor: Descriptor) -> Words:
    words: Words = Words.__new__(Words)
    words.descriptor = descriptor.number
    words._open()
    return words


class Descriptor:
    """Of a file that a worker gets, however it is started. Pickled only while it is."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> Any:
        return _received, (reduction.DupFd(self.number),)


def _received(handle: Any) -> Descriptor:
    return Descriptor(handle.detach())
