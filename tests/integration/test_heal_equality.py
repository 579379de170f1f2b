"""On healthy data `unstuck.DataLoader` is torch's, batch for batch, random numbers included."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy
import pytest
import torch
import torch.utils.data
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.utils.data import BatchSampler, SequentialSampler, WeightedRandomSampler

import unstuck
from tests.integration.loader_data import InBatches, Numbers, Stream, by_key


def flat(value: Any) -> Iterator[Any]:
    """Kinds and contents, in order."""
    if isinstance(value, torch.Tensor):
        yield value.dtype, tuple(value.shape), value.stride(), value.tolist()
    elif isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from flat(part)
    elif isinstance(value, (list, tuple)):
        yield type(value).__name__
        for part in value:
            yield from flat(part)
    else:
        yield value


def epochs(make: Any, dataset: Any, count: int, options: dict[str, Any], generated: bool) -> Any:
    """All that comes out of it, and the random numbers that come after."""
    torch.manual_seed(7)
    random.seed(7)
    numpy.random.seed(7)
    if generated:
        options = {**options, "generator": torch.Generator().manual_seed(3)}
    kind = options.pop("batches", None)
    if kind == "sampler":
        options["batch_sampler"] = BatchSampler(SequentialSampler(dataset), 3, False)
    elif kind is not None:  # of all kinds and sizes
        count = len(dataset)
        options["batch_sampler"] = [kind(range(0, count, 2)), kind([count - 1]), kind(range(count)), kind([0, 0])]
    if options.pop("weighted", False):
        options["sampler"] = WeightedRandomSampler([1.0 + i % 3 for i in range(len(dataset))], 11)
    loader = make(dataset, **options)
    seen = [[list(flat(batch)) for batch in loader] for _ in range(count)]
    length = len(loader) if not isinstance(dataset, Stream) else 0
    if loader._iterator is not None:
        loader._iterator._shutdown_workers()
    states = [torch.get_rng_state()] + ([options["generator"].get_state()] if generated else [])
    return seen, length, [state.tolist() for state in states], random.getstate(), numpy.random.rand()


def same(dataset: Any, count: int = 1, generated: bool = False, **options: Any) -> None:
    theirs = epochs(torch.utils.data.DataLoader, dataset, count, dict(options), generated)
    ours = epochs(unstuck.DataLoader, dataset, count, dict(options), generated)
    assert ours == theirs


def reseed(worker: int) -> None:
    numpy.random.seed(torch.initial_seed() % 2**32 + worker)


DRAWING = st.one_of(
    st.fixed_dictionaries({"batch_size": st.integers(1, 7), "shuffle": st.booleans(), "drop_last": st.booleans()}),
    st.fixed_dictionaries({"batch_size": st.none(), "shuffle": st.booleans()}),
    st.sampled_from([{"batches": "sampler"}, {"batches": list}, {"batches": tuple}, {"batches": numpy.array}]),
    st.just({"weighted": True, "batch_size": 4}),
)
DATA = st.builds(
    lambda kind, length, large, noise: kind(length, large, noise),
    st.sampled_from([Numbers, InBatches]),
    st.integers(1, 20),
    st.booleans(),
    st.booleans(),
)
WORKERS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    st.fixed_dictionaries(
        {
            "num_workers": st.integers(1, 2),
            "prefetch_factor": st.integers(1, 3),
            "persistent_workers": st.booleans(),
            "worker_init_fn": st.sampled_from([None, reseed]),
            "timeout": st.sampled_from([0, 60]),
        }
    ),
)
MATRIX = {"data": DATA, "drawing": DRAWING, "workers": WORKERS, "count": st.integers(1, 2), "generated": st.booleans()}


def _check(data: Any, drawing: dict[str, Any], workers: dict[str, Any], count: int, generated: bool) -> None:
    options = {**drawing, **workers}
    if generated and options.get("batch_size") is not None:
        options["collate_fn"] = by_key
    same(data, count, generated, **options)


COMMON: Any = {"deadline": None, "derandomize": True, "database": None, "suppress_health_check": list(HealthCheck)}


@settings(max_examples=12, **COMMON)
@given(**MATRIX)
def test_a_sample_of_all_settings(**chosen: Any) -> None:
    _check(**chosen)


@pytest.mark.slow
@settings(max_examples=300, **COMMON)
@given(**MATRIX)
def test_all_settings(**chosen: Any) -> None:
    _check(**chosen)


@pytest.mark.parametrize("size", [None, 3])
def test_any_order(size: int | None) -> None:
    found = []
    for make in (torch.utils.data.DataLoader, unstuck.DataLoader):
        loader = make(Numbers(17), batch_size=size, num_workers=2, in_order=False)
        found.append(sorted(list(flat(batch)) for batch in loader))
    assert found[0] == found[1]


def test_an_empty_batch() -> None:
    same(Numbers(5), batch_sampler=[[0, 1], [], [4]], collate_fn=list, num_workers=1)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_start_methods(method: str) -> None:
    data = Numbers(7, noise=True)
    same(data, batch_size=3, shuffle=True, num_workers=1, multiprocessing_context=method)


@pytest.mark.parametrize("workers", [0, 2])
def test_streams(workers: int) -> None:
    same(Stream(17), 2, batch_size=3, num_workers=workers)
    same(Stream(5), 1, batch_size=None, num_workers=workers)


def test_tensors_that_share_memory_still_do() -> None:
    (batch,) = unstuck.DataLoader([0], num_workers=1, collate_fn=_views)
    batch["whole"][0] = 5
    assert [part[0].item() for part in batch["parts"]] == [5, 5]


def _views(_: Any) -> Any:
    whole = torch.zeros(100_000)
    return {"whole": whole, "parts": [whole[:10], whole.view(10, -1)[0]]}


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
@pytest.mark.parametrize("name", ["parameter", "sparse", "empty", "conjugate", "half", "strided"])
def test_odd_tensors(name: str) -> None:
    for make in (torch.utils.data.DataLoader, unstuck.DataLoader):
        (batch,) = make([name], num_workers=1, batch_size=None, collate_fn=_odd)
        wanted = _odd(name)
        assert type(batch) is type(wanted)
        assert (batch.dtype, batch.shape, batch.layout) == (wanted.dtype, wanted.shape, wanted.layout)
        assert batch.requires_grad == wanted.requires_grad
        assert torch.equal(batch.detach().to_dense(), wanted.detach().to_dense())


def _odd(name: str) -> Any:
    return {
        "parameter": lambda: torch.nn.Parameter(torch.ones(3)),
        "sparse": lambda: torch.eye(3).to_sparse(),
        "empty": lambda: torch.empty(0, 3),
        "conjugate": lambda: torch.ones(2, dtype=torch.complex64),
        "half": lambda: torch.ones(40_000, dtype=torch.bfloat16),
        "strided": lambda: torch.arange(24.0).view(2, 3, 4).transpose(0, 2)[1:],
    }[name]()
