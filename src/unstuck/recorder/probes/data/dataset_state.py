"""Plain attributes of a data set: changed in the parent, do its persistent workers know?

Workers that live on from pass to pass keep the data set they were started with. The parent compares what it has now
with what it had then; each worker writes what it has. Only attributes that the sample path reads are of interest.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from types import CodeType, FunctionType

from ... import facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

GIVING = ("__getitem__", "__getitems__", "__iter__", "__call__", "forward")
_PLAIN = (int, float, str, bool, type(None))
SMALL = 16  # numbers in a tensor or array that is still taken for a setting
_CODES = {"torch.float32": "f", "torch.float64": "d", "torch.int64": "q", "torch.int32": "i", "torch.bool": "?"}
_then: dict[int, dict[str, object]] = {}
_before: dict[int, tuple[int, dict[str, object]]] = {}
"""By number of a loader: its data set and what that had when workers were last started for it."""
_fetcher = 0
_passes = 0


def workers_began(loader: Any, number: int) -> list[str]:
    """New workers have the data set as it is now. Gives what has changed of it since workers were last started: those
    that lived on would not know."""
    dataset = loader.__dict__.get("dataset")
    now, before = state(dataset), _before.get(number)
    _before[number] = id(dataset), now
    if loader.__dict__.get("persistent_workers"):
        _then[id(loader)] = now
    if before is None:
        return []
    if before[0] != id(dataset):
        return ["the data set itself"]
    changed = [name for name in now if name not in before[1] or before[1][name] != now[name]]
    read = names_read(dataset) if changed else set()
    return sorted(name for name in changed if name.rpartition(".")[2] in read)


def pass_began(loader: Any, number: int) -> None:
    """The same workers begin another pass."""
    dataset = loader.__dict__.get("dataset")
    then, now = _then.get(id(loader)), state(dataset)
    if then is None or then == now or (number > 4 and number & (number - 1)):
        return
    changed = {name: [then[name], now[name]] for name in now if name in then and then[name] != now[name]}
    if changed:
        read = sorted(name for name in changed if name.rpartition(".")[2] in names_read(dataset))
        told = {
            "loader": id(loader),
            "pass": number,
            "changed": changed,
            "read": read,
            "type": type(dataset).__qualname__,
        }
        facts.tell("dataset-changed", told)


def in_worker(fetcher: Any) -> None:
    """Called for each batch in a worker: a new fetcher is a new pass of a worker that lives on."""
    global _fetcher, _passes
    if id(fetcher) == _fetcher:
        return
    _fetcher, _passes = id(fetcher), _passes + 1
    if _passes > 1 and (_passes < 5 or not _passes & (_passes - 1)):
        facts.write("worker-dataset", {"pass": _passes, "state": state(fetcher.dataset)})


def state(dataset: Any, depth: int = 0) -> dict[str, object]:
    """Plain values in its own dictionary, and in those of the objects it holds, two deep."""
    own = getattr(dataset, "__dict__", None)
    if type(own) is not dict:
        return {}
    found: dict[str, object] = {}
    for name, value in list(own.items())[:64]:
        if type(value) in _PLAIN:
            found[name] = value if not isinstance(value, str) else value[:200]
        elif type(value) in (list, tuple) and len(value) <= 32 and all(type(v) in _PLAIN for v in value):
            found[name] = list(value)
        elif (numbers := _numbers(value)) is not None:
            found[name] = numbers
        elif depth < 2 and type(value).__module__.partition(".")[0] not in (
            "torch",
            "numpy",
            "builtins",
            "multiprocessing",
        ):
            found.update({f"{name}.{inner}": v for inner, v in state(value, depth + 1).items()})
    return found


def _numbers(value: Any) -> object | None:
    """The numbers of a small tensor or array, read from memory; a single one by itself. None for anything else."""
    kind = type(value)
    if (kind.__module__, kind.__name__) == ("numpy", "ndarray") and value.size <= SMALL and value.dtype.kind in "biuf":
        return value.tolist()  # type: ignore[no-any-return]
    if kind is not getattr(sys.modules.get("torch"), "Tensor", None) or not value.is_cpu:
        return None
    code = _CODES.get(str(value.dtype))
    if code is None or not 0 < value.numel() <= SMALL or not value.is_contiguous() or not value.data_ptr():
        return None
    raw = ctypes.string_at(value.data_ptr(), value.numel() * value.element_size())
    numbers = struct.unpack(f"={value.numel()}{code}", raw)
    return numbers[0] if len(numbers) == 1 else list(numbers)


def asks_its_worker(dataset: Any, init: Any) -> bool:
    """Its code, or that of the function that prepares a worker, asks which worker it is in."""
    code = getattr(init, "__code__", None)
    return "get_worker_info" in names_read(dataset) or "get_worker_info" in getattr(code, "co_names", ())


def names_read(dataset: Any) -> set[str]:
    """Every name in the code that gives a sample: of the data set, and of what it holds and what it calls."""
    found: set[str] = set()
    for thing in (dataset, *(getattr(dataset, "__dict__", None) or {}).values()):
        kind = type(thing)
        if kind.__module__.partition(".")[0] in ("builtins", "numpy"):
            continue
        waiting = [f.__code__ for name in GIVING if isinstance(f := getattr(kind, name, None), FunctionType)]
        done: set[CodeType] = set()
        while waiting and len(done) < 50:
            code = waiting.pop()
            if code in done:
                continue
            done.add(code)
            found.update(code.co_names)
            waiting += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
            waiting += [
                f.__code__ for name in code.co_names if isinstance(f := getattr(kind, name, None), FunctionType)
            ]
    return found
