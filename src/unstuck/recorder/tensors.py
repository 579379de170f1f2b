"""The parts of a batch, or of a sample: tensors and texts in nested tuples, lists and dicts, each with its path."""

from __future__ import annotations

import re
import sys
from collections import UserDict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

PARTS = 16
DEEP = 4
LINES = 4096
"""Of so many it is looked whether they are texts."""
TARGET_KEYS = ("label", "labels", "target", "targets", "y", "class", "classes")


def parts(batch: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """(path, tensor or list of texts); what is neither is passed over. Nothing of the user's is called."""
    kind = type(batch)
    if kind is sys.modules["torch"].Tensor:
        yield path, batch
    elif depth >= DEEP:
        return
    elif kind in (list, tuple):
        if batch and all(type(each) is str for each in batch[:: 1 + len(batch) // LINES]):
            yield path, batch if kind is list else list(batch)
        elif len(batch) <= PARTS:
            for place, part in enumerate(batch):
                yield from parts(part, f"{path}[{place}]", depth + 1)
    elif issubclass(kind, tuple) and hasattr(kind, "_fields"):
        for name, part in zip(kind._fields, tuple.__iter__(batch), strict=False):
            yield from parts(part, f"{path}.{name}", depth + 1)
    elif issubclass(kind, dict):
        for key, part in list(dict.items(batch))[:PARTS]:
            if type(key) in (str, int):
                yield from parts(part, f"{path}[{key!r}]", depth + 1)
    elif issubclass(kind, UserDict):  # tokenizers give these
        yield from parts(vars(batch).get("data"), path, depth + 1)


def target_among(paths: list[str]) -> str | None:
    """Where the target is by custom: under a name that says so, else the last of several."""
    if len(paths) < 2:
        return None
    for path in paths:
        if path.strip("[]'.").rpartition("['")[2].lower() in TARGET_KEYS:
            return path
    return paths[-1] if paths[-1].endswith("]") and paths[-1].strip("[]").isdigit() else None


def beside_target(path: str, target: str) -> bool:
    """It comes after the target in the same tuple or list, or has a name that says that it is one too."""
    if path == target:
        return False
    (before, place), (same, at) = (_last(each) for each in (path, target))
    if before == same and place.isdigit() and at.isdigit():
        return int(place) > int(at)
    return any(word in TARGET_KEYS for word in re.split(r"[^a-z]+", place.lower()))


def _last(path: str) -> tuple[str, str]:
    """A path without its last step, and that."""
    found = re.fullmatch(r"(.*?)(?:\['?([^\[\]']*)'?\]|\.(\w+))", path, re.DOTALL)
    return (found.group(1), found.group(2) or found.group(3) or "") if found else (path, "")


def readable(tensor: Any) -> bool:
    """A plain tensor in main memory."""
    return bool(
        tensor.device.type == "cpu"
        and tensor.layout is sys.modules["torch"].strided
        and not tensor.is_quantized
        and not tensor.is_complex()
    )
