"""`unstuck.DataLoader` on faulty data: the epoch ends, and every sample drawn is either there or quarantined."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

import unstuck
from tests.integration.loader_checks import conserved, keys, nothing_left  # noqa: F401
from tests.integration.loader_data import Faulty, FaultyInBatches, Generated, Numbers, OnlyInBatches, Ragged, Stream
from unstuck.heal.loader.quarantine import BadSampleError, LoaderError, TooManyBadSamples, WorkersKeepDying
from unstuck.recorder import guard

pytestmark = pytest.mark.usefixtures("nothing_left")
DEADLY = ["segfaults", "is killed", "exits", "leaves", "hangs", "spins", "closes all files"]


@pytest.fixture(autouse=True)
def unrecorded() -> None:
    """A worker that is recorded leaves its stack to the recorder, of which other tests may have left hooks here."""
    guard.remove_all()


@pytest.mark.parametrize("fault", DEADLY)
@pytest.mark.parametrize("data", [Faulty, FaultyInBatches])
def test_a_deadly_sample_costs_that_sample(fault: str, data: Any, tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    loader = unstuck.DataLoader(
        data(20, _13=fault), batch_size=3, num_workers=2, on_bad_sample="skip", sample_timeout=1, quarantine=file
    )
    assert keys(loader) == [key for key in range(20) if key != 13]
    row = json.loads(file.read_text())
    assert (row["sample"], row["batch"], row["epoch"]) == (13, 4, 0)
    assert row["reason"] == ("hung" if fault in ("hangs", "spins") else "killed its worker")
    if fault in ("hangs", "spins", "segfaults"):
        assert "loader_data.py" in row["traceback"]


def test_a_second_epoch_does_not_try_it_again() -> None:
    loader = unstuck.DataLoader(Faulty(16, _3="exits"), batch_size=4, num_workers=1, on_bad_sample="skip")
    for epoch in range(2):
        conserved(loader, keys(loader), range(16), epoch)
    assert [row.reason for row in loader.bad_samples] == ["killed its worker", "known"]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("data", [Faulty, FaultyInBatches])
@pytest.mark.parametrize("fault", ["raises", "raises oddly"])
def test_a_sample_that_raises(workers: int, data: Any, fault: str) -> None:
    loader = unstuck.DataLoader(data(20, _7=fault), batch_size=4, num_workers=workers, on_bad_sample="skip")
    conserved(loader, keys(loader), range(20))
    (row,) = loader.bad_samples
    assert row.sample == 7
    assert row.reason == "raised"
    assert "loader_data.py" in row.traceback


@pytest.mark.parametrize("workers", [0, 2])
def test_raise_is_what_torch_does(workers: int) -> None:
    data = Faulty(20, _7="raises")
    loader = iter(unstuck.DataLoader(data, batch_size=4, num_workers=workers))
    assert len(next(loader)["key"]) == 4
    with pytest.raises(ValueError, match="cannot read sample 7"):
        next(loader)
    assert next(loader)["key"].tolist() == [8, 9, 10, 11]


def test_raise_names_a_sample_that_kills_its_worker() -> None:
    loader = iter(unstuck.DataLoader(Faulty(12, _5="segfaults"), batch_size=4, num_workers=1))
    next(loader)
    with pytest.raises(BadSampleError, match=r"sample 5 of batch 1 is bad: its worker was killed by SIGSEGV"):
        next(loader)
    assert next(loader)["key"].tolist() == [8, 9, 10, 11]


@pytest.mark.parametrize("fault", ["raises", "exits"])
def test_replace_keeps_the_size_of_the_batch(fault: str) -> None:
    loader = unstuck.DataLoader(Faulty(12, _5=fault), batch_size=4, num_workers=1, on_bad_sample="replace")
    batches = [batch["key"].tolist() for batch in loader]
    assert batches == [[0, 1, 2, 3], [4, batches[1][1], 6, 7], [8, 9, 10, 11]]
    assert batches[1][1] in (4, 6, 7)
    assert [row.sample for row in loader.bad_samples] == [5]


@pytest.mark.parametrize("workers", [0, 2])
def test_replace_where_whole_batches_are_fetched(workers: int) -> None:
    loader = unstuck.DataLoader(
        OnlyInBatches(12, _5="raises"), batch_size=4, num_workers=workers, on_bad_sample="replace"
    )
    batches = [batch["key"].tolist() for batch in loader]
    assert [len(batch) for batch in batches] == [4, 4, 4]
    assert batches[1][1] in (4, 6, 7)
    (row,) = loader.bad_samples
    assert (row.sample, row.replaced_by) == (5, batches[1][1])
    assert "sample_care.py" not in row.traceback


@pytest.mark.parametrize("fault", ["raises", "is killed"])
@pytest.mark.parametrize("in_order", [True, False])
def test_without_batches(fault: str, in_order: bool) -> None:
    loader = unstuck.DataLoader(
        Faulty(20, _5=fault, _11=fault),
        batch_size=None,
        num_workers=2,
        on_bad_sample="skip",
        max_bad=2,
        in_order=in_order,
    )
    conserved(loader, keys(loader), range(20))
    assert {row.sample for row in loader.bad_samples} == {5, 11}


def test_a_batch_of_which_nothing_is_left_is_passed_over() -> None:
    faults = {f"_{index}": "raises" if index % 2 else "exits" for index in range(4, 8)}
    loader = unstuck.DataLoader(Faulty(12, **faults), batch_size=4, num_workers=2, on_bad_sample="skip", max_bad=4)
    assert [batch["key"].tolist() for batch in loader] == [[0, 1, 2, 3], [8, 9, 10, 11]]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_sample_that_does_not_fit_the_others(workers: int) -> None:
    loader = unstuck.DataLoader(Ragged(24), batch_size=8, num_workers=workers, on_bad_sample="skip")
    conserved(loader, keys(loader), range(24))
    assert [(row.sample, row.reason) for row in loader.bad_samples] == [(9, "collate")]


def test_too_many_bad_samples_stop_it() -> None:
    faults = {f"_{index}": "raises" for index in range(0, 40, 5)}
    loader = unstuck.DataLoader(Faulty(40, **faults), batch_size=4, num_workers=2, on_bad_sample="skip", max_bad=3)
    with pytest.raises(TooManyBadSamples, match=r"4 of \d+ samples drawn in epoch 0 are bad, and max_bad=3"):
        keys(loader)


def test_a_share_may_be_bad() -> None:
    faults = {f"_{index}": "raises" for index in range(0, 40, 10)}
    for share, fits in ((0.1, True), (0.07, False)):
        loader = unstuck.DataLoader(Faulty(40, **faults), batch_size=4, on_bad_sample="skip", max_bad=share)
        if fits:
            conserved(loader, keys(loader), range(40))
        else:
            with pytest.raises(TooManyBadSamples):
                keys(loader)


def test_too_many_restarts_stop_it() -> None:
    faults = {f"_{index}": "exits" for index in range(0, 40, 4)}
    loader = unstuck.DataLoader(
        Faulty(40, **faults), batch_size=4, num_workers=1, on_bad_sample="skip", max_bad=40, max_restarts=3
    )
    with pytest.raises(WorkersKeepDying, match="max_restarts=3"):
        keys(loader)


@pytest.mark.parametrize(("fault", "limits"), [("exits", {"max_restarts": 1}), ("raises", {"max_bad": 0})])
def test_persistent_workers_begin_anew_after_it_stopped(fault: str, limits: dict[str, Any]) -> None:
    data = Faulty(40, _7=fault, _21=fault)
    loader = unstuck.DataLoader(
        data, batch_size=4, num_workers=2, on_bad_sample="skip", persistent_workers=True, **{"max_bad": 9, **limits}
    )
    for _ in range(2):
        with pytest.raises(LoaderError):
            keys(loader)
    loader._iterator._shutdown_workers()


def _die(_: int) -> None:
    os._exit(9)


def test_workers_that_never_start_stop_it() -> None:
    loader = unstuck.DataLoader(Numbers(), num_workers=2, worker_init_fn=_die)
    with pytest.raises(WorkersKeepDying, match="died before they fetched anything; the last one exited with code 9"):
        keys(loader)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_other_start_methods(method: str) -> None:
    loader = unstuck.DataLoader(
        Faulty(12, _5="segfaults"), batch_size=4, num_workers=1, on_bad_sample="skip", multiprocessing_context=method
    )
    conserved(loader, keys(loader), range(12))
    assert "loader_data.py" in loader.bad_samples[0].traceback


def test_persistent_workers_through_epochs_left_early() -> None:
    loader = unstuck.DataLoader(
        Faulty(32, _9="exits"), batch_size=4, num_workers=2, on_bad_sample="skip", persistent_workers=True
    )
    for batch in loader:
        assert len(batch["key"]) == 4
        os.kill(loader._iterator._workers[1].pid, signal.SIGKILL)
        break
    conserved(loader, keys(loader), range(32), epoch=1)
    conserved(loader, keys(loader), range(32), epoch=2)
    loader._iterator._shutdown_workers()


# --- streams ---------------------------------------------------------------------------------------------------


def test_a_killed_worker_of_a_stream_is_replaced_where_it_was() -> None:
    loader = unstuck.DataLoader(Stream(60), batch_size=2, num_workers=2)
    seen = []
    for number, batch in enumerate(iterator := iter(loader)):
        seen += batch["key"].tolist()
        if number in (3, 8, 14):
            os.kill(iterator._workers[number % 2].pid, signal.SIGKILL)
    del iterator
    assert sorted(seen) == list(range(60))


def test_an_item_of_a_stream_that_kills_is_named() -> None:
    with pytest.raises(LoaderError, match=r"the stream of worker 0 cannot be read beyond item 4"):
        keys(unstuck.DataLoader(Stream(40, dies_at=10), batch_size=2, num_workers=2, on_bad_sample="skip"))


@pytest.mark.parametrize("workers", [0, 2])
def test_an_item_that_raises_is_left_out_where_the_stream_goes_on(workers: int) -> None:
    loader = unstuck.DataLoader(
        Stream(40, raises_at=10), batch_size=2, num_workers=workers, on_bad_sample="skip", max_bad=1
    )
    assert sorted(keys(loader)) == [key for key in range(40) if key != 10]
    loader = unstuck.DataLoader(
        Generated(40, raises_at=10), batch_size=2, num_workers=workers, on_bad_sample="skip", max_bad=1
    )
    with pytest.raises(ValueError, match="cannot read 10"):  # a generator is over, and the rest of it would be lost
        keys(loader)
