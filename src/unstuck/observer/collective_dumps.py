"""Dumps of torch's own flight recorder (NCCL's watchdog writes one at a timeout): what the backend did, per rank.

On a GPU a collective returns before it has run: which one never ended is in the dump, and nowhere else. It is a pickle
of plain values; anything else in it is refused.
"""

from __future__ import annotations

import os
import pickle
import re
import time
from pathlib import Path
from typing import Any

from unstuck.model import Collective
from unstuck.observer.source import is_user_code
from unstuck.recorder.records.ranks import WorldJoined

KEPT = 16  # of the last collectives
MAX_BYTES = 256 << 20
DTYPES = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64",
    "Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool",
}  # fmt: skip
KINDS = {"_all_gather_base": "all_gather", "_reduce_scatter_base": "reduce_scatter", "all_reduce_barrier": "barrier"}
_BETWEEN_TWO = re.compile(r"(send|recv) \d+(?:->|<-)(\d+)")
_read: dict[str, tuple[float, tuple[Collective, ...]]] = {}


def dumped(joined: WorldJoined) -> tuple[Collective, ...]:
    """The last collectives that the backend of this rank noted since it joined, oldest first; none without a dump."""
    for prefix in joined.dumps if joined.rank is not None else ():
        path = f"{prefix}{joined.rank}"
        try:
            written = os.stat(path)
        except OSError:
            continue
        known = _read.get(path)
        if known is None or known[0] != written.st_mtime:
            known = _read[path] = written.st_mtime, _load(path) if written.st_size <= MAX_BYTES else ()
        if written.st_mtime - _wall() >= joined.at:
            return known[1]
    return ()


def _wall() -> float:
    """Seconds by which the clock of files is ahead of that of the records."""
    return time.time() - time.monotonic()


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} in a dump")


def _load(path: str) -> tuple[Collective, ...]:
    """Nothing where it is cut off, or of another shape."""
    try:
        with Path(path).open("rb") as file:
            entries = _Plain(file).load()["entries"]
        return tuple(_collective(entry) for entry in entries[-KEPT:])
    except (OSError, EOFError, LookupError, TypeError, ValueError, AttributeError, pickle.UnpicklingError):
        return ()


def _collective(entry: dict[str, Any]) -> Collective:
    name = entry["profiling_name"].partition(":")[2]
    two = _BETWEEN_TWO.match(name)
    frames = [(f["filename"], f["line"], f["name"]) for f in entry["frames"] if is_user_code(f["filename"])]
    file, line, function = frames[0] if frames else ("", 0, "")
    over, shape = entry["state"] == "completed" or entry.get("retired"), tuple(next(iter(entry["input_sizes"]), ()))
    ended = entry.get("time_discovered_completed_ns") or entry["time_created_ns"]
    return Collective(
        kind=two[1] if two else KINDS.get(name, name),
        group=entry["process_group"][0],
        number=0 if two else entry["collective_seq_id"],
        entered=entry["time_created_ns"] / 1e9 - _wall(),
        left=ended / 1e9 - _wall() if over else None,
        peer=int(two[2]) if two else None,
        dtype=DTYPES.get(next(iter(entry["input_dtypes"]), ""), ""),
        shape=shape[:4],
        dimensions=len(shape) if entry["input_sizes"] else None,
        file=file,
        line=line,
        function=function,
    )
