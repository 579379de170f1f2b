"""Large messages to other processes: what each holds, and what sending them takes."""

from __future__ import annotations

import multiprocessing.connection
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.unit.recorder.test_nothing_is_run import KINDS
from tests.unit.recorder.untouchable import watching
from tests.unit.recorder.written import written
from unstuck.recorder import guard
from unstuck.recorder.hooks import messages, processes
from unstuck.recorder.probes.pace.repeated_pickles import RepeatedPickle
from unstuck.recorder.records.loaders import RepeatedPickles

MIB = 1 << 20


class Scorer:
    def __init__(self, table: Any) -> None:
        self.table = table

    def score(self, row: int) -> float:
        return float(self.table[row, 0])


def job(function: Any, number: int) -> tuple[Any, ...]:
    """As a pool sends it."""
    return number, 0, map, ((function, (number,)),), {}


def send(jobs: Iterator[Any]) -> list[RepeatedPickles]:
    probe, sent = RepeatedPickle(), messages.Messages()
    for number, each in enumerate(jobs, 1):
        sent.count, sent.bytes = number, number * MIB
        if not number & (number - 1):
            probe.message_pickled(each, sent)
    with written() as records:
        probe.last()
    return records


def test_a_method_brings_its_object_along() -> None:
    scorer = Scorer(np.ones((MIB // 32, 4)))
    (told,) = send(job(scorer.score, number) for number in range(64))
    assert (told.name, told.size) == ("Scorer.table", MIB)
    (told,) = send({"table": scorer.table, "seed": number} for number in range(64))
    assert told.name == "['table']"


def test_new_contents_in_each_message() -> None:
    kept = np.zeros((MIB // 32, 4))

    def refilled() -> Iterator[Any]:
        for number in range(64):
            kept[:] = number
            yield job(len, number), kept

    assert send(np.full((MIB // 8,), float(number)) for number in range(64)) == []
    assert send(refilled()) == [], "one array, filled anew"
    assert send(("x" * MIB, number) for number in range(64)) == [], "no array"


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_run(kind: str) -> None:
    probe, thing, sent = RepeatedPickle(), KINDS[kind](), messages.Messages()
    sent.count = 2
    with watching() as ran:
        probe.message_pickled((thing, [thing], {"thing": thing}), sent)
    assert ran == []


def test_what_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []
    monkeypatch.setattr(processes, "emit", lambda *given: found.append(given[-1].count))
    messages.forget()
    messages.install(multiprocessing.connection)
    try:
        near, far = multiprocessing.connection.Pipe()
        pickler: Any = multiprocessing.connection
        for _ in range(5):
            pickler._ForkingPickler.dumps(bytes(MIB))
            near.send(7)
            assert far.recv() == 7
    finally:
        guard.remove("messages")
    known = messages.messages
    assert (known.count, found) == (5, [1, 2, 4])
    assert known.bytes > 5 * MIB
    assert known.seconds > 0
    messages.forget()
