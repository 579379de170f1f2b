"""Unusable values and states: a clear error, before anything is fetched or lost."""

from __future__ import annotations

import io
import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import RandomSampler

import unstuck
from unstuck.heal.loader.quarantine import LoaderError


class Squares:
    def __init__(self, length: int = 20) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> int:
        if index == 3:
            raise OSError("no such image")
        return index * index


class Endless:
    def __getitem__(self, index: int) -> int:
        return index


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_bad_sample": "ignore"}, "on_bad_sample must be one of 'raise', 'skip', 'replace', not 'ignore'"),
        ({"sample_timeout": 0, "num_workers": 1}, "sample_timeout must be a number of seconds above 0, or None, not 0"),
        ({"sample_timeout": float("inf"), "num_workers": 1}, "sample_timeout must be"),
        ({"sample_timeout": "10", "num_workers": 1}, "sample_timeout must be"),
        ({"sample_timeout": 10}, "sample_timeout needs num_workers of 1 or more"),
        ({"retries": -1}, "retries must be a whole number of 0 or more, not -1"),
        ({"retries": 1.5}, "retries must be"),
        ({"retries": True}, "retries must be"),
        ({"on_bad_sample": None}, "on_bad_sample must be one of"),
        ({"sample_timeout": float("nan"), "num_workers": 1}, "sample_timeout must be"),
        ({"max_restarts": None}, "max_restarts must be"),
        ({"max_restarts": -1}, "max_restarts must be"),
        ({"max_bad": -1}, "max_bad must be a number of samples"),
        ({"max_bad": 1.5}, "max_bad must be"),
        ({"max_bad": float("nan")}, "max_bad must be"),
        ({"max_bad": None}, "max_bad must be"),
        ({"max_bad": "1%"}, "max_bad must be"),
        ({"quarantine": "/nowhere/bad.jsonl"}, "cannot be written: No such file or directory"),
        ({"quarantine": "/"}, "cannot be written: Is a directory"),
    ],
)
def test_unusable_values(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        unstuck.DataLoader(Squares(), **options)


def test_a_quarantine_that_is_no_path() -> None:
    with pytest.raises(TypeError, match="quarantine must be the path of a file, not 3"):
        unstuck.DataLoader(Squares(), quarantine=3)  # type: ignore[arg-type]


def test_a_dataset_without_a_length() -> None:
    with pytest.raises(TypeError, match="Endless has no __len__"):
        unstuck.DataLoader(Endless())
    assert [batch.item() for batch in unstuck.DataLoader(Endless(), sampler=range(3))] == [0, 1, 2]


def test_something_that_is_no_dataset() -> None:
    with pytest.raises(TypeError, match="object has no __getitem__"):
        unstuck.DataLoader(object())


def test_a_dataset_that_cannot_be_pickled() -> None:
    data = Squares()
    data.opener = lambda: None  # type: ignore[attr-defined]
    with (
        pytest.warns(UserWarning, match="Got pickle error"),
        pytest.raises(Exception, match=r"Squares cannot be pickled, which workers started by 'spawn' need: .*lambda"),
    ):
        iter(unstuck.DataLoader(data, num_workers=1, multiprocessing_context="spawn"))


@pytest.mark.parametrize("option", ["collate_fn", "worker_init_fn"])
def test_a_function_that_cannot_be_pickled_is_named(option: str) -> None:
    options: dict[str, Any] = {option: lambda given: given}
    loader = unstuck.DataLoader(Plain(), num_workers=1, multiprocessing_context="forkserver", **options)
    with (
        pytest.warns(UserWarning, match="Got pickle error"),
        pytest.raises(Exception, match=f"what was passed as {option} cannot be pickled"),
    ):
        iter(loader)
    assert multiprocessing.active_children() == []


def test_a_quarantine_that_can_no_longer_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    loader = unstuck.DataLoader(Squares(), on_bad_sample="skip", quarantine=folder / "bad.jsonl")
    (folder / "bad.jsonl").unlink()
    folder.rmdir()
    with pytest.raises(LoaderError, match="Nothing is left out that cannot be written down"):
        list(loader)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("why", ["unwritable", "too many"])
def test_nothing_comes_after_the_error_until_the_next_epoch(workers: int, why: str, tmp_path: Path) -> None:
    """A training that catches errors of batches does not go on with a part of the data."""
    file = tmp_path / "folder" / "bad.jsonl"
    file.parent.mkdir()
    limit = 0 if why == "too many" else 1
    loader = unstuck.DataLoader(
        Squares(), batch_size=2, num_workers=workers, on_bad_sample="skip", max_bad=limit, quarantine=file
    )
    if why == "unwritable":
        file.unlink()
        file.parent.rmdir()
    batches, came, errors = iter(loader), [], 0
    while True:
        try:
            came.append(next(batches).tolist())
        except StopIteration:
            break
        except LoaderError:
            errors += 1
    assert len(came) + errors == 10
    assert errors >= 6  # a worker may have sent some before it was known
    if why == "unwritable":
        file.parent.mkdir()
        assert sum(len(batch) for batch in loader) == 19
        assert len(file.read_text().splitlines()) == 1


def test_a_quarantine_on_a_full_disk_has_no_half_line(tmp_path: Path) -> None:
    import resource
    import signal

    file = tmp_path / "bad.jsonl"
    loader = unstuck.DataLoader(Squares(), on_bad_sample="skip", quarantine=file)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(LoaderError, match="Nothing is left out that cannot be written down"):
            list(loader)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert file.read_text() == ""


# --- states ----------------------------------------------------------------------------------------------------


class Plain(Squares):
    def __getitem__(self, index: int) -> int:
        return index


def some(loader: Any, count: int) -> Iterator[list[int]]:
    for number, batch in enumerate(loader):
        yield batch.tolist()
        if number + 1 == count:
            return


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("generated", [False, True])
@pytest.mark.parametrize("replacement", [False, True])
def test_an_epoch_goes_on_where_it_stood(workers: int, generated: bool, replacement: bool) -> None:
    def make() -> Any:
        generator = torch.Generator().manual_seed(5) if generated else None
        sampler = RandomSampler(Plain(), replacement=replacement, generator=generator)
        return unstuck.DataLoader(Plain(), batch_size=3, sampler=sampler, generator=generator, num_workers=workers)

    torch.manual_seed(1)
    loader = make()
    first = list(some(loader, 3))
    saved = io.BytesIO()
    torch.save(loader.state_dict(), saved)
    torch.manual_seed(1)
    whole = [batch.tolist() for batch in make()]
    assert whole[:3] == first
    torch.manual_seed(99)
    later = make()
    saved.seek(0)
    later.load_state_dict(torch.load(saved, weights_only=True))
    before = torch.get_rng_state()
    rest = list(some(later, 2))
    middle = later.state_dict()
    assert rest == whole[3:5]
    last = make()
    last.load_state_dict(middle)
    assert [batch.tolist() for batch in last] == whole[5:]
    assert len([batch.tolist() for batch in last]) == len(whole)  # the epoch after it is a whole one
    assert before.shape == torch.get_rng_state().shape


class Letters(torch.utils.data.IterableDataset):  # type: ignore[misc]  # mypy does not follow torch
    def __iter__(self) -> Iterator[str]:
        info = torch.utils.data.get_worker_info()
        return iter("abcdefghijklmnopqrstuvwxyz"[info.id :: info.num_workers] if info else "abcdefghijkl")


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("size", [None, 3])
def test_a_stream_goes_on_where_it_stood(workers: int, size: int | None) -> None:
    def make() -> Any:
        return unstuck.DataLoader(Letters(), batch_size=size, num_workers=workers)

    whole = list(make())
    first = make()
    iterator = iter(first)
    begun = [next(iterator) for _ in range(2)]
    second = make()
    second.load_state_dict(first.state_dict())
    iterator = iter(second)
    begun.append(next(iterator))
    third = make()
    third.load_state_dict(second.state_dict())
    assert begun + list(third) == whole
    assert list(third) == whole


def test_a_stream_in_any_order_cannot_be_resumed() -> None:
    loader = unstuck.DataLoader(Letters(), num_workers=1, in_order=False)
    with pytest.raises(ValueError, match="a stream with in_order=False cannot be resumed"):
        loader.load_state_dict(loader.state_dict())


def test_persistent_workers_go_on_where_they_stood() -> None:
    def make() -> Any:
        return unstuck.DataLoader(Plain(), batch_size=3, shuffle=True, num_workers=2, persistent_workers=True)

    loader = make()
    list(loader)
    begun = list(some(loader, 2))
    state = loader.state_dict()
    for other in (loader, make()):
        other.load_state_dict(state)
        rest = [batch.tolist() for batch in other]
        assert sorted(key for batch in begun + rest for key in batch) == list(range(20))
        assert len(list(other)) == 7
        other._iterator._shutdown_workers()
        other._iterator = None


def test_a_state_between_two_epochs_begins_a_new_one() -> None:
    loader = unstuck.DataLoader(Plain(), batch_size=4)
    assert len(list(loader)) == 5
    other = unstuck.DataLoader(Plain(), batch_size=4)
    other.load_state_dict(loader.state_dict())
    assert len(list(other)) == 5


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (None, "not a state of unstuck.DataLoader"),
        ({"epoch": 3}, "not a state of unstuck.DataLoader"),
        ({"unstuck": 1}, "not a state of unstuck.DataLoader"),
        ({**unstuck.DataLoader(Plain()).state_dict(), "done": "x"}, "not a state of unstuck.DataLoader"),
        ({**unstuck.DataLoader(Plain()).state_dict(), "random": 3}, "not a state of unstuck.DataLoader"),
    ],
)
def test_something_that_is_no_state(state: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        unstuck.DataLoader(Plain()).load_state_dict(state)


def test_the_state_of_another_dataset() -> None:
    loader = unstuck.DataLoader(Plain(), batch_size=4, shuffle=True)
    list(some(loader, 2))
    state = loader.state_dict()
    other = unstuck.DataLoader(Plain(30), batch_size=4, shuffle=True)
    with pytest.raises(ValueError, match="samples was 20, is 30; batches was 5, is 8"):
        other.load_state_dict(state)
    assert sorted(key for batch in other for key in batch.tolist()) == list(range(30))
    with pytest.raises(ValueError, match="batch_size was 4, is 5"):
        unstuck.DataLoader(Plain(), batch_size=5, shuffle=True).load_state_dict(state)


def test_the_state_of_another_order() -> None:
    order = list(range(20))
    loader = unstuck.DataLoader(Plain(), batch_size=4, sampler=order)
    list(some(loader, 2))
    other = unstuck.DataLoader(Plain(), batch_size=4, sampler=order[::-1])
    other.load_state_dict(loader.state_dict())
    with pytest.raises(ValueError, match="the sampler draws other samples"):
        list(other)
    assert len(list(other)) == 5
