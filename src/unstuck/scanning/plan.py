"""How a dataset is to be read in a scan: which keys, by how many processes, started in which way."""

from __future__ import annotations

import array
import io
import os
import sys
from collections import deque
from time import monotonic

from ..recorder import layout as at
from ..recorder import lengths, objects
from ..recorder.probes.data import loader_source
from ..recorder.probes.data.shared_handles import handle_of, open_numbers
from ..takeover import import_safe
from ..takeover.untouched import SameRandom, own_copy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

MOST_ROUNDS = 4  # times the dataset's length that are drawn: a sampler may go on forever
MOST_DRAWS, DRAW_SECONDS = 20_000_000, 30.0
MOST_BATCHED = 256  # samples that a dataset is asked for at a time
MOST_OBJECTS, DEPTH = 4000, 6  # of a dataset, that are looked at
FILES = (io.FileIO, io.BufferedReader, io.BufferedRandom, io.TextIOWrapper)
CONNECTED = frozenset(
    ("sqlite3", "_socket", "socket", "ssl", "h5py", "lmdb", "psycopg2", "pymysql", "redis", "requests", "urllib3")
)  # modules whose objects must not be used by several processes at once


class Plan:
    """What every worker is given."""

    def __init__(self, dataset: Any, keys: Sequence[Any] | None, limit: int | None, workers: int) -> None:
        """`keys`: None, if the dataset is iterated."""
        self.dataset, self.limit = dataset, limit
        self.whole: int | None = None if keys is None else len(keys)
        """Samples there are in all, where that is known."""
        self.keys = keys if keys is None or limit is None else keys[:limit]
        self.workers = 1 if self.keys is None else max(1, min(workers, -(-len(self.keys) // 2)))
        self.init: Any = None
        self.method = "fork"
        self.here = False
        """In the very process of the script, because no other one can read it."""
        self.batched = 0
        """Samples that the dataset is asked for at a time; 0: it gives them one by one."""
        self.batches = False
        """Each key asks for a whole batch."""
        self.why = ""
        """Why one process reads it."""

    @property
    def numbered(self) -> bool:
        """The keys are numbers."""
        return self.keys is None or not isinstance(self.keys, list)

    def number(self, position: int) -> int:
        """How a person calls this sample; of a dataset with other keys, the order it was drawn in."""
        return position if self.keys is None or not self.numbered else int(self.keys[position])

    def rows(self, position: int) -> list[int] | None:
        key = self.keys[position] if self.keys is not None else None
        return list(key) if isinstance(key, list) and all(type(part) is int for part in key) else None

    def read_alone(self, why: str) -> None:
        self.workers, self.why = 1, why


def of_loader(loader: Any, limit: int | None, workers: int) -> Plan:
    """For the dataset of a loader, as that loader reads it."""
    own = loader.__dict__
    if lengths.is_iterable(loader):
        plan = Plan(own["dataset"], None, limit, 1)
    else:
        keys = Keys(loader)
        plan = Plan(own["dataset"], keys.all, limit, workers)
        plan.batches = keys.batches
        plan.whole = None if keys.cut else plan.whole
        if own.get("batch_sampler") is not None:
            _read_several(plan, own.get("batch_size") or 32)
    if own.get("num_workers"):
        plan.init = own.get("worker_init_fn")
        context = own.get("_DataLoader__multiprocessing_context")
        method = import_safe.start_method(getattr(context, "_name", None))
        plan.method = method if import_safe.is_guarded() else "fork"
    _choose_readers(plan)
    return plan


def of_dataset(dataset: Any, limit: int | None, workers: int, iterable: bool) -> Plan:
    """For a dataset without a loader."""
    plan = Plan(dataset, None if iterable else range(len(dataset)), limit, workers)
    if not iterable:
        _read_several(plan, 32)
    _choose_readers(plan)
    return plan


def _read_several(plan: Plan, size: int) -> None:
    """Where the dataset has a way to give several samples at once, the loader uses that."""
    source = loader_source.source(plan.dataset)
    if callable(getattr(type(source), "__getitems__", None)):
        plan.batched = max(1, min(MOST_BATCHED, int(size)))


# --- what the loader asks for ------------------------------------------------------------------------------------


class Keys:
    """Each key once, as the loader's sampler draws them, without moving that sampler on.

    `all`: the keys, in order where they are numbers; `batches`: each asks for a whole batch; `cut`: there may be
    more."""

    def __init__(self, loader: Any) -> None:
        own = loader.__dict__
        dataset, batches = own["dataset"], own.get("batch_sampler")
        self.batches = self.cut = False
        plain = batches is None or _is_torchs(batches, "BatchSampler")
        known = _known_keys(dataset, own.get("sampler")) if plain else None
        if known is not None:
            self.all = known
            return
        with SameRandom():
            sampler = own_copy(batches if batches is not None else own.get("sampler"), {})
            self.all = self._draw(iter(sampler), batches is not None, _length(dataset))

    def _draw(self, drawing: Iterator[Any], batched: bool, size: int | None) -> Sequence[Any]:
        by_name: dict[Any, Any] = {}
        draws, until = 0, monotonic() + DRAW_SECONDS
        most = MOST_DRAWS if size is None else max(1000, MOST_ROUNDS * size)
        for drawn in drawing:
            for key in drawn if batched else (drawn,):
                draws += 1
                self.batches = self.batches or isinstance(key, list)
                by_name.setdefault(_name(key), key)
            if draws >= most or (not draws & 1023 and monotonic() > until):
                self.cut = len(by_name) != size
                break
        keys = list(by_name.values())
        if all(_is_number(key) for key in keys):
            self.batches = False
            return array.array("q", sorted(map(int, keys)))
        return keys


def _known_keys(dataset: Any, sampler: Any) -> Sequence[int] | None:
    """Of torch's own samplers: what they can draw at all."""
    own = getattr(sampler, "__dict__", {})
    if _is_torchs(sampler, "DistributedSampler"):  # this rank draws its share; all of them together draw everything
        return range(len(dataset))
    if _is_torchs(sampler, "SequentialSampler", "RandomSampler"):
        return range(len(own["data_source"]))
    if _is_torchs(sampler, "WeightedRandomSampler"):
        return array.array("q", [key for key, weight in enumerate(own["weights"].tolist()) if weight > 0])
    return None


def _is_torchs(thing: Any, *names: str) -> bool:
    return type(thing).__module__.startswith("torch.utils.data") and type(thing).__name__ in names


def _length(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except (TypeError, NotImplementedError):
        return None


def _is_number(key: Any) -> bool:
    kind = type(key)
    return kind is int or (kind.__module__ == "numpy" and hasattr(kind, "__index__") and not hasattr(kind, "__len__"))


def _name(key: Any) -> Any:
    """By which two keys are the same."""
    if type(key) is list:
        return tuple(_name(part) for part in key)
    try:
        hash(key)
    except TypeError:
        return repr(key)
    return repr(key) if getattr(type(key), "__hash__", None) == object.__hash__ else key


# --- who reads it --------------------------------------------------------------------------------------------------


def _choose_readers(plan: Plan) -> None:
    held = _cannot_be_shared(plan.dataset)
    if held == "cuda":
        plan.read_alone("it has tensors on a GPU, which a forked process cannot read")
        plan.here = plan.method == "fork"
    elif held and plan.workers > 1:
        plan.read_alone(f"it holds {held}, which several processes cannot share")


def _cannot_be_shared(dataset: Any) -> str:
    """Something in the dataset that processes forked from this one would share, or could not use."""
    torch = sys.modules["torch"]
    waiting: deque[tuple[Any, int]] = deque([(dataset, 0)])
    seen: set[int] = set()
    while waiting and len(seen) < MOST_OBJECTS:
        thing, depth = waiting.popleft()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        kind, package = type(thing), type(thing).__module__.partition(".")[0]
        if isinstance(thing, torch.Tensor):
            if thing.device.type not in ("cpu", "meta"):
                return "cuda"
        elif kind in FILES and not thing.closed:
            return "an open file"
        elif package in CONNECTED and not isinstance(thing, type):
            return f"a {package.lstrip('_')} {kind.__name__}"
        elif depth < DEPTH:
            inside = [*(objects.instance_dict(thing) or {}).values(), *(part for _, part in objects.some_items(thing))]
            waiting.extend((part, depth + 1) for part in inside)
    return "an open file" if any(map(_is_half_read, open_numbers(at.HIGH))) else ""


def _is_half_read(number: int) -> bool:
    """A plain file whose offset is somewhere in its middle: this process reads it piece by piece."""
    handle = handle_of(number)
    if handle is None or handle.path.endswith("(deleted)"):
        return False
    return 0 < handle.offset() < os.fstat(number).st_size
