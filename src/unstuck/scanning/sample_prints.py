"""A number for each sample, made of everything in it: the same for the same content, none where a part is unknown."""

from __future__ import annotations

import array
import ctypes
import hashlib
import sys

from ..recorder import objects
from .sample_parts import Raw

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

DEEP = 8
NONE = 0  # the print of a sample with a part that cannot be read
_HEAP = 1 << 9  # a class made by a class statement
_view = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)(
    ("PyMemoryView_FromMemory", ctypes.pythonapi)
)


class Unknown(Exception):
    """Something whose content cannot be had without running code of the user's."""


def _sha1(raw: Any) -> int:
    return int.from_bytes(hashlib.sha1(raw, usedforsecurity=False).digest()[:8], "big", signed=True)


class Printer:
    """Makes prints that are the same within this process and those forked from it; or within all, `across` them."""

    def __init__(self, across: bool = False) -> None:
        self.digest: Callable[[Any], int] = _sha1 if across else hash
        """Of bytes. Python's own is by far the fastest; a process that does not stem from ours by fork has another."""

    def prints(self, parts: list[tuple[str, Any]], count: int) -> list[int]:
        """Of samples that were put together part by part."""
        found: list[int | None] = [1] * count
        for path, part in parts:
            name = self.digest(path.encode())
            if isinstance(part, Raw):
                each = [self._known(sample) for sample in part.samples]
            elif type(part) is list:
                each = [self._of(one, 0) for one in part]
            else:
                each = self._rows(part)
            found = [
                None if old is None or new is None else hash((old, name, new))
                for old, new in zip(found, each, strict=True)
            ]
        return [NONE if one is None else one or 1 for one in found]

    def _known(self, sample: Any) -> int | None:
        try:
            return self._of(sample, 0)
        except Unknown:
            return None

    def _rows(self, tensor: Any) -> list[int | None]:
        """Of each row of a tensor, as `_tensor` would print it."""
        head = self._head(tensor.dtype, tensor.shape[1:])
        whole = _in_one_piece(tensor)
        view, width = _memory(whole), len(_memory(whole[0]))
        if not width:
            return [hash((head, 0))] * int(whole.shape[0])
        return [hash((head, self.digest(view[at : at + width]))) for at in range(0, len(view), width)]

    def _tensor(self, tensor: Any) -> int:
        whole = _in_one_piece(tensor)
        return hash((self._head(tensor.dtype, tensor.shape), self.digest(_memory(whole)) if whole.numel() else 0))

    def _head(self, dtype: Any, shape: Any) -> int:
        return self.digest(f"{dtype}{tuple(shape)}".encode())

    def _of(self, value: Any, depth: int) -> int:
        kind = type(value)
        if depth > DEEP:
            raise Unknown
        if value is None or kind in (bool, int, float, complex):
            return self.digest(f"{kind.__name__}{value!r}".encode())
        if kind is str:
            return hash((1, self.digest(value.encode("utf-8", "surrogatepass"))))
        if kind in (bytes, bytearray):
            return hash((2, self.digest(bytes(value))))
        if kind in (list, tuple) or (issubclass(kind, tuple) and hasattr(kind, "_fields")):
            return hash(
                (3, len(value), self._sequence(list(tuple.__iter__(value) if kind is not list else value), depth))
            )
        if issubclass(kind, dict):
            return hash((4, *(self._of(each, depth + 1) for pair in dict.items(value) for each in pair)))
        if isinstance(value, sys.modules["torch"].Tensor):
            return self._tensor(value)
        return self._foreign(value, kind, depth)

    def _sequence(self, values: list[Any], depth: int) -> int:
        kinds = set(map(type, values))
        code = {int: "q", float: "d"}.get(next(iter(kinds))) if len(kinds) == 1 else None
        if code is not None:
            try:
                return hash((code == "q", self.digest(array.array(code, values).tobytes())))
            except OverflowError:
                pass
        return hash(tuple(self._of(each, depth + 1) for each in values))

    def _foreign(self, value: Any, kind: type, depth: int) -> int:
        """An array, a picture, or an object that has nothing but its attributes."""
        if kind.__module__ == "numpy":
            array_ = sys.modules["numpy"].asarray(value)
            if array_.dtype.hasobject:
                raise Unknown
            return hash((self.digest(f"{array_.dtype.str}{array_.shape}".encode()), self.digest(array_.tobytes())))
        if kind.__module__.startswith("PIL.") and hasattr(kind, "tobytes"):
            return hash((self.digest(f"{value.mode}{value.size}".encode()), self.digest(value.tobytes())))
        own = objects.instance_dict(value)
        plain = all(base is object or (base.__flags__ & _HEAP and not _slots(base)) for base in kind.__mro__)
        if own is None or not plain:
            raise Unknown
        return hash((self.digest(kind.__qualname__.encode()), self._of(dict(own), depth + 1)))


def _in_one_piece(tensor: Any) -> Any:
    tensor = tensor.detach()
    if tensor.layout is not sys.modules["torch"].strided or tensor.is_quantized:
        raise Unknown
    return tensor.cpu().resolve_conj().resolve_neg().contiguous()


def _memory(tensor: Any) -> memoryview:
    """Not a copy: it is to be read while the tensor is at hand."""
    view: memoryview = _view(tensor.data_ptr(), tensor.numel() * tensor.element_size(), 0x100)  # to be read only
    return view


def _slots(base: type) -> bool:
    return any(name != "__weakref__" for name in base.__dict__.get("__slots__", ()))
