"""What forked processes of the script's own send first: its print, and what was drawn meanwhile."""

from __future__ import annotations

import pickle
import random
from typing import Any

import numpy as np
import pytest
import torch

from tests.unit.recorder.untouchable import OddFloat, OddList, OddNumber, OddText, Untouchable, watching
from tests.unit.recorder.written import written
from unstuck.recorder import guard
from unstuck.recorder.hooks import processes
from unstuck.recorder.probes.data.first_sent import LOOKED_AT, SENT, FirstSentProbe, print_of, states
from unstuck.recorder.records.loaders import FirstSent


class Process:
    """As multiprocessing keeps what a process is to do."""

    def __init__(self, *arguments: Any) -> None:
        self._target, self._args = self.work, arguments

    def work(self) -> None:
        """A line of the user's."""


def shown(thing: Any) -> int | None:
    return print_of(thing, pickle.dumps(thing))


def test_a_print_is_of_what_tensors_and_arrays_hold() -> None:
    rows = np.arange(12.0)
    assert shown((3, {"x": rows})) == shown((4, {"x": rows.copy()})) != shown((3, {"x": rows + 1}))
    assert shown([torch.from_numpy(rows)]) == shown([rows])
    assert shown((1, rows.tolist())) == shown((2, rows.tolist())) != shown((1, (rows * 2).tolist()))


def test_words_and_small_numbers_are_no_data() -> None:
    assert shown(("ready", 3)) is None
    assert shown(np.zeros(2)) is None
    assert shown("a long message without any array, which is compared as it was sent: byte for byte") is not None


def test_nothing_of_the_users_is_run() -> None:
    odd, process = [OddFloat(2), OddNumber(3), OddText("x"), OddList([1]), Untouchable()], Process(Untouchable())
    process._target = Untouchable()
    with watching() as ran:
        print_of([np.arange(12.0), *odd], b"")
        print_of([0.5] * 3 + odd + [0.5] * 90, b"")
        list(states(process))
        FirstSentProbe().child_sends(np.arange(12.0), b"", process, [1])
    assert ran == []


def test_generators_that_were_drawn_from_are_named() -> None:
    own, process = np.random.default_rng(0), Process()
    process._args = (own, torch.Generator(), random.Random(3))
    draws: dict[str, Any] = {
        "args[0]": lambda: own.normal(),
        "np.random": lambda: np.random.normal(),
        "torch": lambda: torch.rand(1),
        "args[1]": lambda: torch.rand(1, generator=process._args[1]),
        "args[2]": lambda: process._args[2].random(),
    }
    for name, draw in draws.items():
        before = dict(states(process))
        draw()
        assert [key for key, state in states(process) if before[key] != state] == [name]


def test_it_is_told_once_and_then_no_message_is_looked_at() -> None:
    with written() as told:
        probe, left = FirstSentProbe(), [1]
        for _ in range(SENT):
            assert left == [1]
            probe.child_sends(np.full(16, np.random.normal()), b"", Process(), left)
    assert left == [0]
    [sent] = [record for record in told if isinstance(record, FirstSent)]
    assert len(set(sent.prints)) == SENT
    assert sent.drawn == ["np.random"]
    assert sent.site is not None
    assert sent.site[2].endswith("work")


def test_small_messages_are_not_looked_at_for_long() -> None:
    probe, left = FirstSentProbe(), [1]
    for _ in range(LOOKED_AT):
        assert left == [1]
        probe.child_sends("ready", b"", Process(), left)
    assert left == [0]


def test_after_a_fault_of_ours_messages_are_passed_on_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    import multiprocessing.connection as module

    monkeypatch.setattr(guard, "OFF", {})
    monkeypatch.setattr(guard, "_removers", {})
    monkeypatch.setattr(guard, "_tell", lambda *_: None)
    monkeypatch.setattr(module._ForkingPickler, "dumps", module._ForkingPickler.__dict__["dumps"])  # type: ignore[attr-defined]
    processes.install_messages(module)
    processes.sends[:] = 1, None
    monkeypatch.setattr(processes, "look_at_sent", lambda *_: 1 / 0)
    assert pickle.loads(module._ForkingPickler.dumps([1, 2])) == [1, 2]  # type: ignore[attr-defined]
    assert list(guard.OFF) == ["first sent"]
    assert processes.sends == [0, None]
