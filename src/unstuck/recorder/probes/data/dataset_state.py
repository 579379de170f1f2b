"""Plain attributes of a dataset: changed in the parent, do its persistent workers know?

Workers that live on from pass to pass keep the dataset they were started with. The parent compares what it has now
with what it had then; each worker writes what it has. Only attributes that the sample path reads are of interest.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from ... import journal, loading, objects
from ...loading import Loading
from ...probe import Probe, is_due
from ...records.loaders import ChangedAttribute, ChangedDataset, WorkerDataset
from ..object_walk import ObjectWalk
from . import dataset_memory
from .sample_code import attributes, names_read, package_of

MOST_NUMBERS = 16  # in a tensor or array that is still taken for a setting
TEXT, LIST, BITS = 200, 32, 64  # characters, elements and bits that are still a setting
MOST_OBJECTS, MOST_VALUES, DEPTH = 64, 512, 2
MOST_LOADERS = 64
REPLACED = "the dataset itself"
_PLAIN = objects.ids(int, float, str, bool, type(None))
_LISTS = objects.ids(list, tuple)
_LIBRARIES = ("torch", "numpy", "builtins", "multiprocessing")


class StartedWith:
    """What workers were given when they were last started."""

    def __init__(self, dataset: Any, persistent: bool) -> None:
        self.dataset, self.persistent, self.state = id(dataset), persistent, state(dataset)


class DatasetState(Probe):
    name = "dataset state"

    def forget(self) -> None:
        self._given: dict[int, StartedWith] = {}  # by number of a loader
        self._fetcher = 0
        self._passes = 0

    def workers_began(self, loader: Any, number: int) -> list[str]:
        """New workers have the dataset as it is now. Gives what has changed of it since workers were last started:
        those that lived on would not know."""
        own = objects.Own(loader)
        dataset = own.get("dataset")
        before = self._given.pop(number, None)
        given = self._given[number] = StartedWith(dataset, bool(own.get("persistent_workers")))
        if len(self._given) > MOST_LOADERS:
            del self._given[next(iter(self._given))]
        if before is None:
            return []
        if before.dataset != given.dataset:
            return [REPLACED]
        then, now = before.state, given.state
        changed = [name for name in now if name not in then or then[name] != now[name]]
        read = names_read(dataset) if changed else set()
        return sorted(name for name in changed if _is_read(name, read))

    def pass_began(self, loading: Loading, _iterator: Any) -> None:
        """Perhaps the same workers begin another pass."""
        number, given, loader = loading.passes + 1, self._given.get(loading.number), loading.loader()
        if given is None or not given.persistent or loader is None or not is_due(number):
            return
        dataset = objects.Own(loader).get("dataset")
        then, now = given.state, state(dataset)
        changed = [name for name in now if name in then and then[name] != now[name]]
        if changed:
            read = names_read(dataset)
            journal.tell(
                ChangedDataset(
                    number=loading.number,
                    dataset=objects.class_name(type(dataset)),
                    passes=number,
                    changed=[
                        ChangedAttribute(name=name, then=then[name], now=now[name], read=_is_read(name, read))
                        for name in changed
                    ],
                )
            )

    def fetch_began(self, fetcher: Any) -> None:
        """In a worker: a new fetcher is a new pass of a worker that lives on."""
        if id(fetcher) == self._fetcher:
            return
        self._fetcher, self._passes = id(fetcher), self._passes + 1
        if self._passes > 1 and is_due(self._passes):
            journal.write(WorkerDataset(passes=self._passes, state=state(loading.dataset_of_fetcher(fetcher))))


def _is_read(name: str, read: set[str]) -> bool:
    return name.rpartition(".")[2] in read


def state(dataset: Any) -> dict[str, Any]:
    """Plain values among its attributes, and among those of the objects it holds, two deep."""
    values: dict[str, Any] = {}
    for path, thing in ObjectWalk(_own_objects, MOST_OBJECTS, DEPTH).over([("", dataset)]):
        for name, value in attributes(thing):
            setting = _setting(value)
            if setting is not objects.UNKNOWN and len(values) < MOST_VALUES:
                values[path + name[:TEXT]] = setting
    return values


def _own_objects(thing: Any) -> Iterator[tuple[str, Any]]:
    """Those among its attributes that are no library's."""
    for name, value in attributes(thing):
        if package_of(type(value)) not in _LIBRARIES:
            yield f"{name[:TEXT]}.", value


def _setting(value: Any) -> Any:
    """A plain value, a short list of these, the numbers of a small tensor or array; UNKNOWN for anything else."""
    if _is_plain(value):
        return _cut(value)
    if id(type(value)) in _LISTS:
        return list(map(_cut, value)) if len(value) <= LIST and all(map(_is_plain, value)) else objects.UNKNOWN
    numbers = _numbers(value)
    return objects.UNKNOWN if numbers is None else numbers


def _is_plain(value: Any) -> bool:
    return id(type(value)) in _PLAIN and (type(value) is not int or value.bit_length() <= BITS)


def _cut(value: Any) -> Any:
    return value[:TEXT] if type(value) is str else value


def _numbers(value: Any) -> Any:
    """The numbers of a small tensor or array, read from memory; a single one by itself. None for anything else."""
    if type(value) is getattr(sys.modules.get("numpy"), "ndarray", None):
        return value.tolist() if value.size <= MOST_NUMBERS and value.dtype.kind in "biuf" else None
    if "torch" not in sys.modules or not dataset_memory.is_tensor(value):
        return None
    lies = dataset_memory.extent(value)
    if lies is None or value.numel() > MOST_NUMBERS or not value.is_contiguous():
        return None
    numbers = dataset_memory.numbers(lies, dataset_memory.read(lies))
    return numbers[0] if numbers is not None and len(numbers) == 1 else numbers
