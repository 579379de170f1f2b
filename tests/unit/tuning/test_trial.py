"""One candidate measured for real: short passes as a whole, and no worker left."""

from __future__ import annotations

import multiprocessing
import time
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

from unstuck.takeover.interrupts import Interrupted, Patience
from unstuck.takeover.loaders_in_use import samples_in
from unstuck.tuning import worker_settings
from unstuck.tuning.race import Candidate, Chunk, Duel, rate_of
from unstuck.tuning.trial import Trial, joined
from unstuck.tuning.worker_settings import Settings


class Rows(Dataset):  # type: ignore[misc]
    def __init__(self, number: int, hangs: bool = False) -> None:
        self.number, self.hangs = number, hangs

    def __len__(self) -> int:
        return self.number

    def __getitem__(self, index: int) -> Any:
        if self.hangs and get_worker_info() is not None:
            time.sleep(1000)
        time.sleep(0.0005)
        return torch.zeros(2)


def test_a_long_pass_is_measured_in_its_middle() -> None:
    trial = Trial(DataLoader(Rows(100_000), batch_size=4), Settings(), timeout=10, size=4)
    chunks = trial.slice(0.05)
    assert 0 < rate_of(chunks) < 2000
    assert not trial.whole
    assert trial.length is None
    trial.close()


@pytest.mark.parametrize("persistent", [False, True])
def test_a_short_pass_is_measured_as_a_whole(persistent: bool) -> None:
    before = multiprocessing.active_children()
    loader = DataLoader(Rows(22), batch_size=4, num_workers=1, persistent_workers=persistent)
    trial = Trial(loader, worker_settings.of_loader(loader), timeout=30, skip=3)
    chunks = trial.slice(0.1)
    assert trial.whole
    assert trial.length == 6
    assert all(chunk.samples % 22 == 0 for chunk in chunks)
    assert trial.batch == 4
    trial.close()
    trial.close()
    assert multiprocessing.active_children() == before


def test_a_worker_that_hangs_is_ended_soon() -> None:
    before = multiprocessing.active_children()
    loader = DataLoader(Rows(100, hangs=True), batch_size=4, num_workers=1)
    began = time.monotonic()
    with pytest.raises(RuntimeError, match="timed out"):
        Trial(loader, worker_settings.of_loader(loader), timeout=1)
    assert time.monotonic() - began < 20
    assert multiprocessing.active_children() == before


def test_no_batches_are_an_error_not_an_endless_loop() -> None:
    with pytest.raises(ValueError, match="no batches"):
        Trial(DataLoader(Rows(0), batch_size=4), Settings(), timeout=10)


def test_ctrl_c_breaks_into_waiting_only() -> None:
    patience = Patience()
    trial = Trial(DataLoader(Rows(100)), Settings(), timeout=10, patience=patience)
    patience.interrupt()  # nothing is waited for: it is only noted
    with pytest.raises(Interrupted):
        trial.slice(0.1)
    patience.waiting = True
    with pytest.raises(Interrupted):
        patience.interrupt()
    patience.end()
    trial.close()


def test_samples_of_a_batch() -> None:
    assert samples_in({"x": [torch.zeros(3, 2)], "y": torch.zeros(3)}) == 3
    assert samples_in(("text", torch.zeros(()))) == 1


def test_rounds_are_put_together_without_loss() -> None:
    rounds = [Chunk(number, 1.0) for number in range(20)]
    few = joined(rounds)
    assert len(few) == 6
    assert sum(chunk.samples for chunk in few) == sum(range(20))


def test_intervals_grow_with_the_spread() -> None:
    steady = Candidate(Settings(), [Chunk(100, 1.0)] * 6)
    shaky = Candidate(Settings(), [Chunk(100 + 50 * (-1) ** n, 1.0) for n in range(6)])
    assert steady.rate == shaky.rate == 100
    (low, high), (lower, higher) = steady.interval(), shaky.interval()
    assert lower < low < 100 < high < higher
    assert Candidate(Settings()).rate == 0


def test_a_duel_is_decided_when_all_pairs_agree() -> None:
    assert Duel([1.5]).is_decided()
    duel = Duel([1.1])
    assert not duel.is_decided()
    duel.ratios.append(1.08)
    assert duel.is_decided()
    assert duel.ratio == pytest.approx(1.09, rel=0.01)


@pytest.mark.parametrize(
    ("ratios", "better"),
    [
        ([], False),
        ([1.3], False),
        ([1.6], True),
        ([1.2, 1.0], False),
        ([1.1, 1.2, 1.3], True),
        ([1.1, 0.99, 1.3], False),
        ([1.1, 1.2, 1.1, 0.9, 1.1, 1.2, 1.1, 1.1], True),
        ([1.1, 1.2, 1.1, 0.9, 0.9, 1.2, 1.1, 1.1], False),
    ],
)
def test_better_is_what_nearly_all_pairs_say(ratios: list[float], better: bool) -> None:
    assert Duel(ratios).is_better() == better
