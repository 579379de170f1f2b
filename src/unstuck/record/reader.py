"""Reads flight files from outside, while the writer runs, hangs, or long after it died. Not injected."""

from __future__ import annotations

import json
import mmap
import os
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import cast

from unstuck.model import Fact, Flight, Pace, Phase, Role, Step
from unstuck.record import layout as at

NANO = 1e9
_WORKER = at.ROLES.index("worker")


@dataclass(slots=True)
class FlightFile:
    """One process's flight file, mapped for reading; `progress` is the cheap look, `flight()` the whole."""

    path: Path
    words: memoryview
    _map: mmap.mmap
    facts_read: int = 0
    facts: list[Fact] = field(default_factory=list)

    @classmethod
    def open(cls, path: Path) -> FlightFile | None:
        """None for a file that is not (yet) whole."""
        try:
            with path.open("rb") as file:
                if os.fstat(file.fileno()).st_size < at.SIZE:
                    return None
                mapped = mmap.mmap(file.fileno(), at.SIZE, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            return None
        words = memoryview(mapped).cast("q")
        if words[at.W_MAGIC] != at.MAGIC or words[at.W_VERSION] != at.VERSION:
            words.release()
            mapped.close()
            return None
        return cls(path, words, mapped)

    def close(self) -> None:
        self.words.release()
        self._map.close()

    @property
    def pid(self) -> int:
        return int(self.words[at.W_PID])

    @property
    def progress(self) -> int:
        """Seams passed, and within a batch the sample in work: it moves whenever anything moved."""
        w = self.words
        return int(w[at.W_PROGRESS]) * 1_000_003 + int(w[at.W_POSITION])

    @property
    def trains(self) -> bool:
        """A training runs in this process: a loader, a backward pass or an optimizer was used, not as a worker."""
        w = self.words
        return w[at.W_ROLE] != _WORKER and bool(w[at.W_LOADERS] or w[at.W_PROGRESS]) and not w[at.W_ENDED]

    def pace(self) -> Pace:
        """How long the present kind of phase takes in this run."""
        phase = int(self.words[at.W_PHASE])
        if phase >= at.ENDED:
            return Pace()
        base = at.HISTOGRAMS + phase * at.KIND_WORDS
        return _pace([int(word) for word in self.words[base : base + at.KIND_WORDS]], 0, base=0)

    def alive(self) -> bool:
        """The very process that wrote it still runs."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            return False
        return int(stat[19]) == self.words[at.W_START_TICKS] and stat[0] not in (b"Z", b"X")

    def signalled(self) -> int:
        """Bytes of the stacks it left on SIGINT, SIGTERM or a crash."""
        try:
            return self.path.with_suffix(at.SIGNALS).stat().st_size
        except OSError:
            return 0

    def read_facts(self) -> list[Fact]:
        """All facts so far; only what is new is read."""
        try:
            with self.path.with_suffix(at.FACTS).open("rb") as file:
                file.seek(self.facts_read)
                new = file.read()
        except OSError:
            return self.facts
        whole = new[: new.rfind(b"\n") + 1]
        self.facts_read += len(whole)
        for line in whole.splitlines():
            try:
                raw = json.loads(line)
                self.facts.append(Fact(raw["pid"], raw["at"], raw["kind"], raw["data"]))
            except (ValueError, KeyError):
                continue
        return self.facts

    def flight(self, alive: bool | None = None) -> Flight:
        w = [int(word) for word in self.words[: at.RING_END]]
        off = tuple((f.data["probe"], f.data["why"]) for f in self.read_facts() if f.kind == "probe-off")
        position = w[at.W_POSITION]
        return Flight(
            pid=w[at.W_PID],
            began=w[at.W_BEGAN] / NANO,
            read_at=monotonic(),
            role=self._role(w),
            worker=_some(w[at.W_WORKER]),
            rank=_some(w[at.W_RANK]),
            phase=cast("Phase", _name(at.PHASES, w[at.W_PHASE])),
            since=w[at.W_SINCE] / NANO,
            step=w[at.W_STEP],
            epoch=w[at.W_EPOCH],
            batch=w[at.W_BATCH],
            progress=self.progress,
            fetching=w[at.W_FETCHING] > 0,
            collating=position == at.COLLATING,
            loaders=w[at.W_LOADERS],
            sample=_some(w[at.W_SAMPLE]),
            sample_key=self._text(w[at.W_KEY_LENGTH], at.KEY_AT, at.KEY_SIZE),
            position=position if position >= 0 else None,
            sample_since=w[at.W_SAMPLE_SINCE] / NANO,
            owed_by=_some(w[at.W_OWED]),
            attempts=w[at.W_ATTEMPTS],
            attempt_target=self._text(w[at.W_TARGET_LENGTH], at.TARGET_AT, at.TARGET_SIZE),
            sleeps=w[at.W_SLEEPS],
            forked=bool(w[at.W_FORKED]),
            ended=bool(w[at.W_ENDED]),
            paces={kind: _pace(w, number) for number, kind in enumerate(at.KINDS)},
            steps=_steps(w),
            alive=self.alive() if alive is None else alive,
            probes_off=off,
        )

    @staticmethod
    def _role(w: list[int]) -> Role:
        written = _name(at.ROLES, w[at.W_ROLE])
        if written != "worker" and (w[at.W_LOADERS] or w[at.W_PROGRESS] > 1):
            written = "rank" if w[at.W_RANK] >= 0 else "main"
        return cast("Role", written)

    def _text(self, length: int, offset: int, size: int) -> str:
        raw = self._map[offset : offset + min(max(length, 0), size)]
        return raw.decode("utf-8", "replace")


def read_folder(folder: Path) -> tuple[list[Flight], list[Fact]]:
    """Everything in a folder of raw flight files, after all else is gone."""
    flights, facts = [], []
    for path in sorted(folder.glob("*" + at.FLIGHT)):
        file = FlightFile.open(path)
        if file is None:
            continue
        flights.append(file.flight())
        facts.extend(file.read_facts())
        file.close()
    return flights, sorted(facts, key=lambda fact: fact.at)


def _name(names: tuple[str, ...], number: int) -> str:
    return names[number] if 0 <= number < len(names) else names[0]


def _some(word: int) -> int | None:
    return None if word < 0 else word


def _pace(w: list[int], kind: int, base: int | None = None) -> Pace:
    """Count, median and p99 from the buckets: each an upper bound, less than twice the true value."""
    if base is None:
        base = at.HISTOGRAMS + kind * at.KIND_WORDS
    counts = w[base : base + at.BUCKETS]
    count = sum(counts)
    if not count:
        return Pace()
    longest = w[base + at.LONGEST]

    def quantile(share: float) -> float:
        below = 0
        for bucket, number in enumerate(counts):
            below += number
            if below >= share * count:
                return min(1 << bucket, longest) / NANO
        return longest / NANO

    return Pace(count, quantile(0.5), quantile(0.99), longest / NANO, w[base + at.TOTAL] / NANO)


def _steps(w: list[int]) -> tuple[Step, ...]:
    done = w[at.W_STEP]
    steps = []
    for number in range(max(0, done - at.RING_STEPS), done):
        place = at.RING + number % at.RING_STEPS * at.STEP_WORDS
        ended, whole, data, backward, optimizer = (part / NANO for part in w[place : place + at.STEP_WORDS])
        steps.append(Step(ended, whole, data, backward, optimizer))
    return tuple(steps)
