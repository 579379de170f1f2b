"""A whole data set, gone through once by processes of our own: what raises or hangs is listed, and it goes on."""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
from multiprocessing.connection import wait
from time import monotonic, monotonic_ns

from ..records.data import HungSample, KillingSample
from . import in_process
from .place import Place
from .second_look import Again
from .seen import W_AT, W_COUNT, W_DONE, W_SINCE, WORDS, Board, Seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .plan import Plan

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


class Scan:
    """One pass. `seen` has all that was handed over."""

    def __init__(self, plan: Plan, seconds: float, folder: str | None = None) -> None:
        self.plan, self.seconds = plan, seconds
        self.count = None if plan.keys is None else len(plan.keys)
        self.seen = Seen()
        self.again = Again(self)
        self.hung: list[HungSample] = []
        self.died: list[KillingSample] = []
        self.interrupted = self.gave_up = False
        self.took = 0.0
        self._given, self._own = folder, ""
        self._names = self._next = self._started = self._old_done = 0
        self._size = TASK
        self._left: list[tuple[int, list[int], bool]] = []
        """Tasks of workers that are gone."""
        self._places: list[Place | None] = []

    def run(self, progress: Progress) -> None:
        began = monotonic()
        self._own = "" if self._given else tempfile.mkdtemp(prefix=f"unstuck-{os.getpid()}-")
        self.folder = self._given or self._own
        self.words = Board(os.path.join(self.folder, "scan-board"), self.plan.workers).words
        try:
            if not self.plan.here:
                self._in_processes(progress)
            if self.plan.here:
                in_process.run(self, progress)
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            self._end()
        self.took = monotonic() - began

    def _in_processes(self, progress: Progress) -> None:
        self._places = [self._start(number) for number in range(self.plan.workers)]
        while any(place is not None for place in self._places):
            self._turn()
            progress(self.done(), self.count)
            if in_process.is_needed(self.seen):
                self._begin_anew_here()

    def _begin_anew_here(self) -> None:
        for place in self._places:
            if place is not None:
                place.kill()
        self._places, self.seen, self.hung, self.died = [], Seen(), [], []
        self._old_done = 0
        for word in range(len(self.words)):
            self.words[word] = 0
        self.plan.alone("its samples are made on a GPU, which a forked process cannot use")
        self.plan.here = True

    def done(self) -> int:
        return self._old_done + sum(int(self.words[n * WORDS + W_DONE]) for n in range(self.plan.workers))

    # --- workers ---------------------------------------------------------------------------------------------------

    def _start(self, number: int) -> Place:
        at = number * WORDS
        self._old_done += int(self.words[at + W_DONE])
        for word in range(WORDS):
            self.words[at + word] = 0
        self._started += 1  # each has a seed of its own: two with one seed would draw the same
        return Place(self.plan, number, self._started, self.folder)

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
            since = int(self.words[place.number * WORDS + W_SINCE])
            if since and now - since > self.seconds * 1e9:
                self._hangs(place, (now - since) / 1e9)
            elif not place.ready and not since and monotonic() - place.began > START:
                self._lost(place)
        self._look_again()

    def _look_again(self) -> None:
        """When all is handed over: some samples are fetched once more."""
        waiting = [place for place in self._places if place is not None]
        if not waiting or not all(place.idle for place in waiting):
            return
        asked = self.again.asked() if not self.gave_up else []
        for at, place in enumerate(waiting):
            place.idle = False
            place.pipe.send(("again", asked[at :: len(waiting)]))
            place.pipe.send(None)

    def _hear(self, place: Place, word: tuple[Any, ...]) -> None:
        if word[0] == "seen":
            self.seen.merge(pickle.loads(word[2]))
            for name in word[1]:
                place.tasks.pop(name, None)
            if word[3] in place.tasks:
                del place.tasks[word[3]][0][: word[4]]
        elif word[0] == "again":
            self.again.came(word[1])
        elif word[0] == "told":
            place.idle = True
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

    def _give(self, place: Place) -> None:
        if place.asked_to_tell:
            return
        task = self._task()
        place.asked = monotonic()
        if task is None:
            place.asked_to_tell = True
            place.pipe.send("tell")
        else:
            place.tasks[task[0]] = task[1:]
            place.pipe.send(task)

    def _task(self) -> tuple[int, list[int], bool] | None:
        if self._left:
            return self._left.pop()
        count = self.count or 0
        if self._next >= count:
            return None
        # Towards the end in small pieces, so that all workers end together.
        size = max(1, min(self._size, (count - self._next) // (2 * self.plan.workers) or 1))
        places = list(range(self._next, min(count, self._next + size)))
        self._next += size
        self._names += 1
        return self._names, places, False

    def _adapt(self, place: Place) -> None:
        took = monotonic() - place.asked
        if took < PIECE / 2:
            self._size = min(LONGEST_TASK, self._size * 2)
        elif took > PIECE * 2:
            self._size = max(1, self._size // 2)

    # --- what goes wrong -------------------------------------------------------------------------------------------

    def _hangs(self, place: Place, standing: float) -> None:
        """Note where it hangs, end it, and let another one go on behind that sample."""
        words, at = self.words, place.number * WORDS
        sample, since = int(words[at + W_AT]), int(words[at + W_SINCE])
        if int(words[at + W_COUNT]) > 1:
            self._replace(place, None)
            return
        spins, site = place.spins(), place.site()
        if int(words[at + W_SINCE]) != since or int(words[at + W_AT]) != sample:
            return  # it moved on meanwhile
        if not self.again.began:
            self.hung.append(HungSample(sample=sample, seconds=standing, spins=spins, site=site))
        self._replace(place, sample)

    def _lost(self, place: Place) -> None:
        """The worker died."""
        words, at = self.words, place.number * WORDS
        sample = int(words[at + W_AT]) if words[at + W_SINCE] else None
        place.process.join(1)
        if int(words[at + W_COUNT]) > 1 and sample is not None:
            self._replace(place, None)
            return
        if not self.again.began:
            self.died.append(KillingSample(sample=sample, exitcode=place.process.exitcode))
        if sample is None and not place.tasks:
            self._places[place.number] = None
            place.kill()
            return
        self._replace(place, sample)

    def _replace(self, place: Place, bad: int | None) -> None:
        """`bad`: the sample that is not to be asked for again; None: it is one of several, and they are asked for one
        by one."""
        place.kill()
        singly = bad is None
        left = [
            (name, [each for each in places if each != bad], singly or alone)
            for name, (places, alone) in place.tasks.items()
        ]
        self._left += [task for task in left if task[1]]
        at = place.number * WORDS
        again = sum(len(task[1]) for task in left)
        self.words[at + W_DONE] = max(0, int(self.words[at + W_DONE]) - again + (bad is not None))
        self.gave_up = self.gave_up or len(self.hung) + len(self.died) > HUNG
        over = self.plan.keys is None or self.gave_up or self.again.began
        self._places[place.number] = None if over else self._start(place.number)

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
        if self._own:
            shutil.rmtree(self._own, ignore_errors=True)
