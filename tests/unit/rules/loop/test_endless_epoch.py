"""A `for` within an epoch loop over what never runs out, and over what does or may."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.rules.loop.described_loops import STEPS, described
from unstuck.model import Finding
from unstuck.rules.loop import endless_epoch

HEAD = """
import threading
import time
from itertools import count, cycle, islice
from queue import SimpleQueue

def batches(rows, again=True):
    while True:
        for row in rows:
            yield row

def once(rows):
    yield from rows

class Reader:
    def __init__(self, rows): self.rows, self.at = rows, 0
    def read(self):
        if self.at + 2 > len(self.rows):
            self.at = 0
        part = self.rows[self.at : self.at + 2]
        self.at += 2
        return part
    def read_once(self):
        if self.at + 2 > len(self.rows):
            return None
        self.at += 2
        return self.rows[self.at - 2 : self.at]

class Feed:
    def __init__(self, rows): self.rows = rows
    def __iter__(self): return batches(self.rows)
    def pairs(self): return zip(cycle(self.rows), batches(self.rows))
    def epoch(self): return zip(cycle(self.rows), self.rows)

class Queued:
    def __init__(self, rows, again):
        self.rows, self.again, self.queue = rows, again, SimpleQueue()
    def __iter__(self):
        threading.Thread(target=self.fill if self.again else self.fill_once, daemon=True).start()
        while True:
            row = self.queue.get()
            if row is None:
                return
            yield row

class Fed(Queued):
    def fill(self):
        while True:
            for row in self.rows:
                self.queue.put(row)
            time.sleep(0.01)
        self.queue.put(None)

class FedOnce(Queued):
    def fill_once(self):
        for row in self.rows:
            self.queue.put(row)
        self.queue.put(None)

class FedUntil(Queued):
    def fill(self):
        rounds = 0
        while True:
            for row in self.rows:
                self.queue.put(row)
            rounds += 1
            if rounds == 1000:
                break
            time.sleep(0.01)
        self.queue.put(None)

ROWS = list(range(50))
"""
ENDLESS = {
    "a generator": ("batches(ROWS)", "batches starts over"),
    "enumerated": ("enumerate(batches(ROWS))", "batches starts over"),
    "an object": ("Feed(ROWS)", "batches starts over"),
    "a method": ("Feed(ROWS).pairs()", "pairs starts over"),
    "itertools": ("cycle(ROWS)", "never runs out"),
    "until None": ("iter(Reader(ROWS).read, None)", "read never returns None"),
    "a queue": ("Fed(ROWS, True)", "fill starts over"),
}
ENDING = {
    "a pass": "once(ROWS * 100)",
    "a part": "islice(batches(ROWS), 10_000)",
    "the shorter": "Feed(ROWS * 100).epoch()",
    "until None": "iter(Reader(ROWS * 100).read_once, None)",
    "a queue that ends": "FedOnce(ROWS * 100, False)",
    "a queue that may end": "FedUntil(ROWS, True)",
    "until something": "iter(Reader(ROWS).read, [-1])",
}
LOOPS = """
def train(step_made):
    things, seen = {things}, 0
    for epoch in range(3):
        for batch in things:
            step_made()
            seen += 1
            {inside}
"""


def judged(tmp_path: Path, things: str, inside: str = "", of: str = LOOPS) -> list[Finding]:
    source = HEAD + of.format(things=things, inside=inside)
    case, made = described(tmp_path, source.replace("for batch in things", f"for batch in {things}"))
    assert made == STEPS
    return list(endless_epoch.decide(case))


@pytest.mark.parametrize("name", ENDLESS)
def test_names_what_never_ends(tmp_path: Path, name: str) -> None:
    things, words = ENDLESS[name]
    (finding,) = judged(tmp_path, things)
    assert words in " ".join((finding.title, *finding.evidence))
    assert finding.severity == "error"


@pytest.mark.parametrize("name", ENDING)
def test_is_silent_about_what_ends(tmp_path: Path, name: str) -> None:
    assert judged(tmp_path, ENDING[name]) == []


def test_an_object_that_was_made_before(tmp_path: Path) -> None:
    case, _ = described(tmp_path, HEAD + LOOPS.format(things="batches(ROWS)", inside=""))
    assert len(list(endless_epoch.decide(case))) == 1


@pytest.mark.parametrize(
    "inside", ["if seen == 10_000: break", "if batch == 10_000: return", "if seen > 9999: raise StopIteration"]
)
def test_is_silent_where_something_may_leave_it(tmp_path: Path, inside: str) -> None:
    assert judged(tmp_path, "batches(ROWS)", inside) == []


def test_is_silent_about_steps_that_nothing_waits_for(tmp_path: Path) -> None:
    alone = """
def train(step_made):
    for batch in {things}:
        step_made()
"""
    assert judged(tmp_path, "batches(ROWS)", of=alone) == []
