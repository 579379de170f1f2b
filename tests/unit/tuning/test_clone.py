"""A clone gives the same batches with other settings, and uses up nothing of the loader it is made from."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    get_worker_info,
)

from unstuck.takeover.untouched import SameRandom
from unstuck.tuning import search_limits, worker_settings
from unstuck.tuning.clone import Threads, clone
from unstuck.tuning.worker_settings import Settings


class Rows(Dataset):  # type: ignore[misc]
    def __len__(self) -> int:
        return 20

    def __getitem__(self, index: int) -> Any:
        return torch.tensor([float(index)])


class Stream(IterableDataset):  # type: ignore[misc]
    def __iter__(self) -> Iterator[Any]:
        yield from torch.arange(10.0)


class Divided(Stream):
    def __iter__(self) -> Iterator[Any]:
        info = torch.utils.data.get_worker_info()
        yield from torch.arange(10.0)[info.id if info else 0 :: info.num_workers if info else 1]


def join(batch: list[Any]) -> Any:
    return torch.stack(batch) * 2


def seed(worker: int) -> None:
    torch.set_num_threads(3 + worker)


def share(worker: int) -> None:
    in_parts(1, worker)


def in_parts(size: int, worker: int) -> None:
    assert get_worker_info() is not None
    assert size + worker


def batches(loader: Any) -> list[Any]:
    return [batch.tolist() for batch in loader]


def test_every_attribute_is_kept() -> None:
    generator = torch.Generator().manual_seed(3)
    context = torch.multiprocessing.get_context("spawn")
    rows = Rows()
    loader = DataLoader(
        rows,
        batch_size=3,
        shuffle=True,
        num_workers=2,
        collate_fn=join,
        drop_last=True,
        timeout=7,
        worker_init_fn=seed,
        multiprocessing_context=context,
        generator=generator,
        prefetch_factor=5,
        persistent_workers=True,
    )
    made = clone(loader, worker_settings.of_loader(loader).but(prefetch_factor=3), timeout=99)
    assert made.dataset is rows
    for name in ("batch_size", "drop_last", "timeout", "collate_fn", "worker_init_fn", "num_workers", "in_order"):
        assert getattr(made, name) is getattr(loader, name), name
    assert made.multiprocessing_context is context
    assert made.persistent_workers
    assert made.prefetch_factor == 3
    assert isinstance(made.sampler, RandomSampler)


def test_the_same_batches_and_a_generator_left_alone() -> None:
    generator = torch.Generator().manual_seed(3)
    loader = DataLoader(Rows(), batch_size=3, shuffle=True, generator=generator)
    before = generator.get_state()
    given = batches(clone(loader, worker_settings.of_loader(loader)))
    assert torch.equal(generator.get_state(), before)
    assert given == batches(loader)
    assert given != sorted(given)


def test_samplers_draw_from_generators_of_their_own() -> None:
    generator = torch.Generator().manual_seed(3)
    inner = RandomSampler(Rows(), generator=generator)
    loader = DataLoader(Rows(), batch_sampler=BatchSampler(inner, 4, True))
    before = generator.get_state()
    made = clone(loader, worker_settings.of_loader(loader))
    assert made.batch_size is None
    assert made.batch_sampler is not loader.batch_sampler
    assert len(batches(made)) == 5
    assert torch.equal(generator.get_state(), before)


class Shuffled(SequentialSampler):  # type: ignore[misc]
    """Not torch's way of drawing."""

    def __init__(self, rows: Any) -> None:
        super().__init__(rows)
        self.random, self.numpy = random.Random(5), np.random.default_rng(5)

    def __iter__(self) -> Iterator[int]:
        order = list(range(len(self.data_source)))
        self.random.shuffle(order)
        self.numpy.shuffle(order)
        return iter(order)


def test_a_sampler_with_other_random_numbers() -> None:
    loader = DataLoader(Rows(), batch_size=5, sampler=Shuffled(Rows()))
    given = batches(clone(loader, worker_settings.of_loader(loader)))
    assert given == batches(loader)


def test_an_iterable_data_set() -> None:
    loader = DataLoader(Stream(), batch_size=4, drop_last=True)
    made = clone(loader, Settings())
    assert batches(made) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_no_batches_at_all() -> None:
    loader = DataLoader(Rows(), batch_size=None, sampler=range(3))
    made = clone(loader, Settings())
    assert (made.batch_size, made.batch_sampler) == (None, None)
    assert batches(made) == [[0.0], [1.0], [2.0]]


def test_a_pass_that_begins_further_on_once() -> None:
    loader = DataLoader(Rows(), batch_size=8)
    made = clone(loader, Settings(), skip=2)
    assert len(made) == 3
    assert batches(made) == [[[16.0], [17.0], [18.0], [19.0]]]
    assert len(batches(made)) == 3
    by_batches = DataLoader(Rows(), batch_sampler=BatchSampler(SequentialSampler(Rows()), 8, False))
    assert batches(clone(by_batches, Settings(), skip=2)) == [[[16.0], [17.0], [18.0], [19.0]]]


class Placed(DataLoader):  # type: ignore[misc]
    """As frameworks make them."""

    def __init__(self, device: str, **options: Any) -> None:
        self.device = device
        super().__init__(**options)


class Same(DataLoader):  # type: ignore[misc]
    pass


def test_a_class_of_its_own_if_it_takes_the_same_arguments() -> None:
    assert type(clone(Placed("cpu", dataset=Rows()), Settings())) is DataLoader
    assert type(clone(Same(Rows()), Settings())) is Same


def test_a_timeout_only_where_there_is_none_and_workers_are() -> None:
    loader = DataLoader(Rows(), num_workers=1)
    assert clone(loader, worker_settings.of_loader(loader), timeout=9).timeout == 9
    assert clone(loader, Settings(), timeout=9).timeout == 0


def test_threads_come_before_the_script_own_init() -> None:
    loader = DataLoader(Rows(), num_workers=1, worker_init_fn=seed)
    made = clone(loader, worker_settings.of_loader(loader).but(threads=2))
    assert isinstance(made.worker_init_fn, Threads)
    before = torch.get_num_threads()
    try:
        made.worker_init_fn(0)
        assert torch.get_num_threads() == 3
        Threads(2, None)(0)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_random_numbers_go_on_as_if_nothing_had_been() -> None:
    def drawn() -> tuple[float, float, float]:
        return random.random(), float(np.random.rand()), float(torch.rand(()))

    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    wanted = drawn()
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    with SameRandom():
        drawn()
    assert drawn() == wanted


@pytest.mark.parametrize(
    ("loader", "divided"),
    [
        (DataLoader(Rows()), True),
        (DataLoader(Stream()), False),
        (DataLoader(Divided()), True),
        (DataLoader(Stream(), worker_init_fn=seed), False),
        (DataLoader(Stream(), worker_init_fn=share), True),
        (DataLoader(Stream(), worker_init_fn=partial(in_parts, 2)), True),
    ],
)
def test_a_stream_that_does_not_divide_gets_no_more_workers(loader: Any, divided: bool) -> None:
    assert search_limits.divides(loader) is divided
    assert (search_limits.limits(loader, worker_settings.of_loader(loader), gpu=False).most_workers > 1) is divided
