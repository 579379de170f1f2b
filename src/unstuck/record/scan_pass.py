"""A whole data set, gone through once by processes of our own: what raises or hangs is listed, and it goes on."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import shutil
import sys
import tempfile
from multiprocessing.connection import wait
from time import monotonic, monotonic_ns, sleep

from . import data_told, samples_stacked, scan_worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Progress = Callable[[int, int | None], object]

TASK = 64
"""Samples of a task at first; then as many as take a worker about a fifth of a second."""
LONGEST_TASK = 4096
PIECE = 0.2
TICK = 0.1
START = 120.0
"""Seconds that a worker may take to begin (a spawned one imports the script again)."""
HUNG = 20
"""Samples that hang, after which the scan gives up."""
CHECKED = 500
"""Samples with the same print that are compared in full,"""
CHECKING = 0.05
"""as long as that takes no more than this share of the scan; the others are told by their prints."""
NAMED = 50
LOOKS = 8


class Scan:
    """One pass. `seen` has all that was handed over."""

    def __init__(self, dataset: Any, *, samples: int | None, iterable: bool, workers: int, seconds: float) -> None:
        self.dataset, self.iterable, self.seconds = dataset, iterable, seconds
        self.samples = samples
        self.number = 1 if iterable else max(1, min(workers, -(-(samples or 1) // 2)))
        self.init: Any = None
        self.method = multiprocessing.get_start_method(allow_none=True) or "fork"
        self.limit: int | None = None
        self.seen = scan_worker.Seen()
        self.hung: list[dict[str, Any]] = []
        self.died: list[dict[str, Any]] = []
        self.interrupted = self.gave_up = False
        self.done = 0
        self.took = 0.0
        self._names = 0
        self._next = 0
        self._size = TASK
        self._again: list[tuple[int, list[int]]] = []
        self._places: list[_Place | None] = []
        self._old_done = 0

    def run(self, progress: Progress) -> None:
        began = monotonic()
        self._folder = tempfile.mkdtemp(prefix="unstuck-scan-")
        try:
            self._words = scan_worker.Board(os.path.join(self._folder, "board"), self.number).words
            self._places = [self._start(number) for number in range(self.number)]
            while any(place is not None for place in self._places):
                self._turn()
                progress(self._count(), self.samples)
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            self._end()
        self.done, self.took = self._count(), monotonic() - began
        progress(self.done, self.samples)

    def _count(self) -> int:
        return self._old_done + sum(int(self._words[n * scan_worker.WORDS + scan_worker.W_DONE]) for n in self._numbers)

    @property
    def _numbers(self) -> range:
        return range(self.number)

    # --- workers ---------------------------------------------------------------------------------------------------

    def _start(self, number: int) -> _Place:
        context = multiprocessing.get_context(self.method)
        ours, theirs = context.Pipe()
        at = number * scan_worker.WORDS
        self._old_done += int(self._words[at + scan_worker.W_DONE])
        for word in range(scan_worker.WORDS):
            self._words[at + word] = 0
        about = (self.dataset, theirs, number, self.number, self._folder, self.iterable, self.init, self.limit)
        process: Any = context.Process(target=scan_worker.work, args=about, daemon=True)  # type: ignore[attr-defined]
        process.start()
        theirs.close()
        return _Place(number, process, ours)

    def _turn(self) -> None:
        """Take what has come, give out work, look whether somebody hangs."""
        open_places = [place for place in self._places if place is not None]
        for pipe in wait([place.pipe for place in open_places], TICK):
            place = next(place for place in open_places if place.pipe is pipe)
            try:
                self._hear(place, place.pipe.recv())
            except (EOFError, OSError):
                self._lost(place)
        now = monotonic_ns()
        for place in open_places:
            if self._places[place.number] is not place:
                continue
            since = int(self._words[place.number * scan_worker.WORDS + scan_worker.W_SINCE])
            if since and now - since > self.seconds * 1e9:
                self._hangs(place, (now - since) / 1e9)
            elif not place.ready and monotonic() - place.began > START:
                self._lost(place)

    def _hear(self, place: _Place, word: tuple[Any, ...]) -> None:
        if word[0] == "seen":
            self.seen.merge(pickle.loads(word[2]))
            for name in word[1]:
                place.tasks.pop(name, None)
            if word[3] in place.tasks:
                del place.tasks[word[3]][: word[4]]
        elif word[0] == "end":
            self._places[place.number] = None
            place.close()
        else:
            if word[0] == "done":
                self._adapt(place)
            else:
                place.ready = True
                self._give(place)  # one more than it works on, so that it never waits for us
            self._give(place)

    def _give(self, place: _Place) -> None:
        if place.told_end:
            return
        task = self._task()
        place.asked, place.told_end = monotonic(), task is None
        if task is not None:
            place.tasks[task[0]] = task[1]
        place.pipe.send(task)

    def _task(self) -> tuple[int, list[int]] | None:
        if self._again:
            return self._again.pop()
        count = self.samples or 0
        if self._next >= count:
            return None
        # Towards the end in small pieces, so that all workers end together.
        size = max(1, min(self._size, (count - self._next) // (2 * self.number) or 1))
        indices = list(range(self._next, min(count, self._next + size)))
        self._next += size
        self._names += 1
        return self._names, indices

    def _adapt(self, place: _Place) -> None:
        took = monotonic() - place.asked
        if took < PIECE / 2:
            self._size = min(LONGEST_TASK, self._size * 2)
        elif took > PIECE * 2:
            self._size = max(1, self._size // 2)

    # --- what goes wrong -------------------------------------------------------------------------------------------

    def _hangs(self, place: _Place, standing: float) -> None:
        """Note where it hangs, end it, and let another one go on behind that sample."""
        words, at = self._words, place.number * scan_worker.WORDS
        index = int(words[at + scan_worker.W_INDEX])
        spins = _spins(place.process.pid)
        stack = self._stack(place)
        if int(words[at + scan_worker.W_SINCE]) == 0 or int(words[at + scan_worker.W_INDEX]) != index:
            return  # it moved on meanwhile
        self.hung.append({"sample": index, "seconds": standing, "spins": spins, **stack})
        self._replace(place, index)

    def _lost(self, place: _Place) -> None:
        """The worker died."""
        words, at = self._words, place.number * scan_worker.WORDS
        index = int(words[at + scan_worker.W_INDEX]) if words[at + scan_worker.W_SINCE] else None
        place.process.join(1)
        self.died.append({"sample": index, "exitcode": place.process.exitcode})
        if len(self.died) > HUNG or (index is None and not place.tasks):
            self._places[place.number] = None
            place.kill()
            return
        self._replace(place, index)

    def _replace(self, place: _Place, bad: int | None) -> None:
        place.kill()
        left = [(name, [each for each in indices if each != bad]) for name, indices in place.tasks.items()]
        self._again += [(name, indices) for name, indices in left if indices]
        at = place.number * scan_worker.WORDS
        again = sum(len(indices) for _, indices in left)
        self._words[at + scan_worker.W_DONE] = max(0, int(self._words[at + scan_worker.W_DONE]) - again + 1)
        self.gave_up = self.gave_up or len(self.hung) + len(self.died) > HUNG
        if self.iterable or self.gave_up:
            self._places[place.number] = None
        else:
            self._places[place.number] = self._start(place.number)

    def _stack(self, place: _Place) -> dict[str, Any]:
        """The innermost line of the user's, as the worker's own handler of faults writes it."""
        path = os.path.join(self._folder, f"stack-{place.number}-{place.process.pid}")
        try:
            os.kill(place.process.pid, scan_worker.SIGNAL)
            sleep(0.4)
            with open(path) as file:
                lines = file.read().splitlines()
        except OSError:
            return {"site": None, "stack": []}
        found = [frame for line in lines if (frame := _frame(line)) is not None]
        from . import sites

        own = [frame for frame in found if sites.is_user_file(str(frame[0]))]
        return {"site": own[0] if own else None, "stack": found[:6]}

    def _end(self) -> None:
        """Hear the last words of those that still live, and end them."""
        until = monotonic() + 1.5
        for place in self._places:
            if place is None:
                continue
            try:
                while self.interrupted and monotonic() < until and place.pipe.poll(0):
                    word = place.pipe.recv()
                    if word[0] == "seen":
                        self.seen.merge(pickle.loads(word[2]))
            except (EOFError, OSError):
                pass
            place.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    # --- what came of it -------------------------------------------------------------------------------------------

    def duplicates(self) -> list[list[int]]:
        """Samples with the very same content, in groups: those with one print, compared in full."""
        groups: dict[int, list[int]] = {}
        for key, index in self.seen.prints:
            groups.setdefault(key, []).append(index)
        alike = [sorted(set(group)) for group in groups.values() if len(group) > 1]
        alike = [group for group in alike if len(group) > 1]
        if self.iterable:
            return alike
        found: list[list[int]] = []
        checked, until = 0, monotonic() + 0.1 + CHECKING * self.took
        for group in alike:
            checked += len(group)
            if checked > CHECKED or monotonic() > until:
                found.append(group)
                continue
            by_content: dict[str, list[int]] = {}
            for index in group:
                by_content.setdefault(self._digest(index), []).append(index)
            found += [same for digest, same in by_content.items() if digest and len(same) > 1]
        return found

    def _digest(self, index: int) -> str:
        try:
            parts = list(samples_stacked.stacked([self.dataset[index]]))
            return samples_stacked.exact(parts, 1)[0]
        except Exception:
            return ""

    def plain(self) -> dict[str, Any]:
        """As a fact for the rules and for the person."""
        torch = sys.modules["torch"]
        duplicates = self.duplicates() if not self.interrupted else []
        median = _median(self.seen.times)
        with torch.no_grad():
            told = data_told.told(self.seen.gathered)
        return {
            **told,
            "rows": self.seen.samples,
            "scan": {
                "done": self.seen.samples + self.seen.failed + len(self.hung),
                "of": self.samples,
                "workers": self.number,
                "interrupted": self.interrupted,
                "gave_up": self.gave_up,
                "failed": self.seen.failed,
                "raised": sorted(self.seen.raised, key=lambda each: int(each["sample"]))[:NAMED],
                "hung": self.hung,
                "died": self.died,
                "median": median,
                "slow": [[round(took, 3), index] for took, index in self.seen.slow if took > max(0.2, 30 * median)],
                "duplicates": duplicates[:NAMED],
                "duplicated": sum(len(group) - 1 for group in duplicates),
                "odd": self.seen.odd,
            },
        }


class _Place:
    """One worker, and the tasks whose results it has not handed over."""

    def __init__(self, number: int, process: Any, pipe: Any) -> None:
        self.number, self.process, self.pipe = number, process, pipe
        self.tasks: dict[int, list[int]] = {}
        self.asked = self.began = monotonic()
        self.ready = self.told_end = False

    def kill(self) -> None:
        if self.process.is_alive():
            self.process.kill()
        self.close()

    def close(self) -> None:
        self.process.join(5)
        self.pipe.close()


def _frame(line: str) -> list[str | int] | None:
    """File "x.py", line 3 in f"""
    head, _, rest = line.strip().partition('", line ')
    number, _, function = rest.partition(" in ")
    return [head[6:], int(number), function] if head.startswith('File "') and number.isdigit() else None


def _spins(pid: int) -> bool:
    """It wants the processor, each time it is looked at: on a crowded machine it need not have got it."""
    wants = 0
    for _ in range(LOOKS):
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                wants += file.read().rpartition(b")")[2].split()[0] == b"R"
        except OSError:
            return False
        sleep(0.03)
    return wants > LOOKS // 2


def _median(times: list[int]) -> float:
    """From the histogram: the middle of the bucket."""
    half, count = sum(times) / 2, 0
    for bits, number in enumerate(times):
        count += number
        if number and count >= half:
            return 0.75 * 2.0**bits / 1e9
    return 0.0
