"""How a data set is to be read in a scan: what is asked for, by how many processes, started in which way."""

from __future__ import annotations

import ast
import io
import multiprocessing
import os
import stat
import sys
from collections import deque

from .. import layout as at
from .. import lengths, objects
from ..probes.data import loader_source
from . import keys as scan_keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

OBJECTS, DEPTH = 4000, 6
FILES = (io.FileIO, io.BufferedReader, io.BufferedRandom, io.TextIOWrapper)
CONNECTED = (
    "sqlite3",
    "_socket",
    "socket",
    "ssl",
    "h5py",
    "lmdb",
    "psycopg2",
    "pymysql",
    "redis",
    "requests",
    "urllib3",
)
"""Modules whose objects must not be used by several processes at once."""


class Plan:
    """What every worker is given."""

    def __init__(self, dataset: Any, keys: Sequence[Any] | None, workers: int) -> None:
        self.dataset, self.keys = dataset, keys
        self.whole: int | None = None if keys is None else len(keys)
        """Samples there are in all, where that is known; `limit` may leave some out."""
        self.init: Any = None
        self.limit: int | None = None
        self.method, self.here = "fork", False
        """`here`: in the very process of the script, because no other one can read it."""
        self.batched = 0
        """Samples that the data set is asked for at a time; 0: it gives them one by one."""
        self.batches = False
        """Each key asks for a whole batch."""
        self.why = ""
        self.workers = 1 if keys is None else max(1, min(workers, -(-len(keys) // 2)))

    @property
    def catches(self) -> type[BaseException]:
        """In the script's own process an interrupt is for us."""
        return Exception if self.here else BaseException

    @property
    def numbered(self) -> bool:
        """The keys are numbers."""
        return self.keys is None or not isinstance(self.keys, list)

    def number(self, place: int) -> int:
        """How a person calls this sample; of a data set with other keys, when it was drawn."""
        return place if self.keys is None or isinstance(self.keys, list) else int(self.keys[place])

    def rows(self, place: int) -> list[int] | None:
        key = self.keys[place] if self.keys is not None else None
        return list(key) if isinstance(key, list) and all(type(each) is int for each in key) else None

    def alone(self, why: str) -> None:
        self.workers, self.why = 1, why


def of(loader: Any, limit: int | None, workers: int) -> Plan:
    """For the data set of a loader, as that loader reads it."""
    own = loader.__dict__
    dataset = own["dataset"]
    if lengths.is_iterable(loader):
        plan = Plan(dataset, None, 1)
    else:
        keys = scan_keys.of(loader, limit)
        plan = Plan(dataset, keys.all, workers)
        plan.batches = keys.batches
        plan.whole = None if keys.cut else _whole(loader, len(keys.all), limit)
        _by_several(plan, own.get("batch_size") or 32, auto=own.get("batch_sampler") is not None)
    plan.init = own.get("worker_init_fn") if own.get("num_workers") else None
    _start_method(plan, own)
    _who_reads(plan)
    plan.limit = limit
    return plan


def of_dataset(dataset: Any, limit: int | None, workers: int, iterable: bool) -> Plan:
    """For a data set without a loader."""
    size = None if iterable else len(dataset)
    plan = Plan(dataset, None if size is None else range(size if limit is None else min(size, limit)), workers)
    plan.whole = size
    if size is not None:
        _by_several(plan, 32, auto=True)
    _who_reads(plan)
    plan.limit = limit
    return plan


def _whole(loader: Any, found: int, limit: int | None) -> int | None:
    """How many there are without the limit."""
    if limit is None or found < limit:
        return found
    return len(scan_keys.of(loader, None).all)


def _by_several(plan: Plan, size: int, auto: bool) -> None:
    """Where the data set has a way to give several samples at once, the loader uses that."""
    source = loader_source.source(plan.dataset)
    if auto and callable(getattr(type(source), "__getitems__", None)):
        plan.batched = max(1, min(256, int(size)))


def _start_method(plan: Plan, own: dict[str, Any]) -> None:
    """The loader's own, if it uses workers and the script can be imported without running; else fork."""
    context = own.get("_DataLoader__multiprocessing_context")
    asked = getattr(context, "_name", None) or multiprocessing.get_start_method(allow_none=True) or "fork"
    if own.get("num_workers") and asked != "fork" and guarded():
        plan.method = str(asked)


def guarded() -> bool:
    """A fresh interpreter that imports the main script does not run it as well."""
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    try:
        with open(path or "", encoding="utf-8", errors="replace") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return False
    tests = [ast.dump(node.test) for node in tree.body if isinstance(node, ast.If)]
    return any("'__name__'" in test and "'__main__'" in test for test in tests)


def _who_reads(plan: Plan) -> None:
    held = _held(plan.dataset)
    if held == "cuda":
        plan.alone("it has tensors on a GPU, which a forked process cannot read")
        plan.here = plan.method == "fork"
    elif held and plan.workers > 1:
        plan.alone(f"it holds {held}, which several processes cannot share")


def _held(dataset: Any) -> str:
    """Something in the data set that processes forked from this one would share, or could not use."""
    torch = sys.modules["torch"]
    waiting: deque[tuple[Any, int]] = deque([(dataset, 0)])
    seen: set[int] = set()
    while waiting and len(seen) < OBJECTS:
        thing, depth = waiting.popleft()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        kind = type(thing)
        if isinstance(thing, torch.Tensor):
            if thing.device.type not in ("cpu", "meta"):
                return "cuda"
            continue
        if kind in FILES and not thing.closed:
            return "an open file"
        if kind.__module__.partition(".")[0] in CONNECTED and not isinstance(thing, type):
            return f"a {kind.__module__.partition('.')[0].lstrip('_')} {kind.__name__}"
        if depth < DEPTH:
            own = objects.instance_dict(thing)
            beneath = list(own.values()) if own is not None else []
            waiting.extend((value, depth + 1) for value in (*beneath, *(each for _, each in objects.some_items(thing))))
    return "an open file" if _moved_files() else ""


def _moved_files() -> bool:
    """A plain file that is open for reading, and somewhere in its middle: this process reads it piece by piece."""
    import fcntl

    for name in os.listdir("/proc/self/fd"):
        number = int(name)
        if 2 < number < at.HIGH:  # ours are above
            try:
                about, path = os.fstat(number), os.readlink(f"/proc/self/fd/{number}")
                mode = fcntl.fcntl(number, fcntl.F_GETFL) & (os.O_ACCMODE | os.O_APPEND)
                plain = stat.S_ISREG(about.st_mode) and mode in (os.O_RDONLY, os.O_RDWR)
                if plain and 0 < os.lseek(number, 0, os.SEEK_CUR) < about.st_size and not path.endswith("(deleted)"):
                    return True
            except OSError:
                continue
    return False
