"""What is in samples, whatever they are made of: put together part by part, and a print of each, by which the same
content is known again."""

from __future__ import annotations

import ctypes
import hashlib
import io
import pickle
import sys
from itertools import islice

from ..recorder import objects, tensors
from ..recorder.tensors import DEEP, PARTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

WIDER = {"u2": "int32", "u4": "int64"}  # arrays whose type torch hardly knows, and one that holds all their values

NONE = 0  # the print of a sample with a part that cannot be read


class Raw:
    """A part that no statistics are made of, sample by sample: it tells samples apart all the same."""

    def __init__(self, samples: list[Any]) -> None:
        self.samples = samples


def stacked(samples: list[Any], path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """(path, tensor with a row a sample | list of tensors of different shapes | list of texts | Raw): all there is."""
    torch = sys.modules["torch"]
    kind = type(samples[0])
    whole = _whole(samples) if kind is torch.Tensor else None
    if whole is not None:
        yield path, whole
    elif any(type(sample) is not kind for sample in samples) or depth > DEEP:
        yield path, Raw(samples)
    elif kind is list and depth and all(_numbers(sample) for sample in samples):
        yield from _vectors(samples, path)
    elif kind in (tuple, list) or (issubclass(kind, tuple) and hasattr(kind, "_fields")):
        yield from _columns(samples, path, depth)
    elif (dicts := _as_dicts(samples, kind)) is not None:
        yield from _entries(samples, dicts, path, depth)
    elif kind is str:
        yield path, samples
    elif kind in (int, float, bool) and (kind is not int or all(abs(sample) < 1 << 62 for sample in samples)):
        types = {int: torch.int64, float: torch.float64, bool: torch.bool}
        yield path, torch.tensor(samples, dtype=types[kind], device="cpu")
    else:
        rows = [_tensor(sample) for sample in samples]
        yield path, Raw(samples) if any(row is None for row in rows) else _together(rows)


def _columns(samples: list[Any], path: str, depth: int) -> Iterator[tuple[str, Any]]:
    """Tuples, part by part; of different lengths, only to tell them apart."""
    kind, width = type(samples[0]), len(samples[0])
    if depth >= DEEP or not 0 < width <= PARTS or any(len(sample) != width for sample in samples):
        yield path, Raw(samples)
        return
    names = [f".{name}" for name in getattr(kind, "_fields", ())] or [f"[{place}]" for place in range(width)]
    for name, column in zip(names, zip(*samples, strict=True), strict=True):
        yield from stacked(list(column), path + name, depth + 1)


def _as_dicts(samples: list[Any], kind: type) -> list[dict[Any, Any]] | None:
    """Of dicts, of what tokenizers give (a UserDict), and of dataclasses; None: they are none of these."""
    if issubclass(kind, dict):
        return samples
    by_name = tensors.is_user_dict(kind)
    if not by_name and not _is_dataclass(kind):
        return None
    own = [objects.instance_dict(sample) or {} for sample in samples]
    return [attributes.get("data") or {} for attributes in own] if by_name else own


def _is_dataclass(kind: type) -> bool:
    return type(tensors.written(kind, "__dataclass_fields__")) is dict


def _entries(samples: list[Any], dicts: list[dict[Any, Any]], path: str, depth: int) -> Iterator[tuple[str, Any]]:
    """What all of them have; where that is not all there is, they are told apart as a whole."""
    keys = list(islice(dicts[0], PARTS)) if depth < DEEP else []
    shared = [key for key in keys if type(key) in (str, int) and all(key in entries for entries in dicts)]
    attributes = dicts is not samples and not tensors.is_user_dict(type(samples[0]))
    for key in shared:
        name = f".{key}" if attributes else f"[{key!r}]"
        yield from stacked([entries[key] for entries in dicts], path + name, depth + 1)
    if any(len(entries) != len(shared) for entries in dicts):
        yield path, Raw(samples)


def _vectors(samples: list[Any], path: str) -> Iterator[tuple[str, Any]]:
    """Lists of numbers, of one length or not: tokens as a rule."""
    torch = sys.modules["torch"]
    whole = all(type(number) is int for sample in samples for number in sample)
    try:
        kind = torch.int64 if whole else torch.float64
        yield path, _together([torch.tensor(sample, dtype=kind, device="cpu") for sample in samples])
    except (RuntimeError, OverflowError):  # beyond 64 bits
        yield path, Raw(samples)


def _numbers(values: list[Any]) -> bool:
    return set(map(type, values)) <= {int, float}


def _together(tensors: list[Any]) -> Any:
    first = tensors[0]
    alike = all(tensor.shape == first.shape and tensor.dtype == first.dtype for tensor in tensors)
    return sys.modules["torch"].stack(tensors) if alike else tensors


def _whole(samples: list[Any]) -> Any:
    """Tensors of one shape in one; None where they are not such."""
    torch = sys.modules["torch"]
    first = samples[0].dtype
    try:
        whole = torch.stack(samples).detach()
    except (RuntimeError, TypeError):
        return None
    alike = whole.layout is torch.strided and all(sample.dtype == first for sample in samples)
    return whole.cpu() if alike and not whole.is_quantized else None


def _tensor(value: Any) -> Any:
    """A tensor in main memory; also of an array, a number of numpy's, or a picture."""
    torch = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        plain = value.detach()
        return plain.cpu() if plain.layout is torch.strided and not plain.is_quantized else None
    kind = type(value)
    if kind.__module__ == "numpy":
        numpy = sys.modules["numpy"]
        array = numpy.asarray(value)
        if array.dtype.str[1:] in WIDER:
            array = array.astype(WIDER[array.dtype.str[1:]])
        if array.dtype.kind not in "biuf" or array.dtype.str[1:] in ("u8", "f16") or not array.dtype.isnative:
            return None
        return torch.from_numpy(numpy.array(array)) if array.size else None
    if kind.__module__.startswith("PIL.") and value.mode in ("L", "RGB", "RGBA"):
        bands = len(value.mode)
        raw = torch.frombuffer(bytearray(value.tobytes()), dtype=torch.uint8)
        return raw.reshape(value.size[1], value.size[0], bands)
    return None


# --- prints --------------------------------------------------------------------------------------------------------


class Printer:
    """Makes prints that are the same within this process and those forked from it; or within all, `across` them."""

    def __init__(self, across: bool = False) -> None:
        self._digest: Callable[[Any], int] = _sha1 if across else hash
        """Of bytes. Python's own is by far the fastest; a process that does not stem from ours by fork has another."""

    def prints(self, parts: list[tuple[str, Any]], count: int) -> list[int]:
        """Of samples that were put together part by part."""
        prints: list[int | None] = [1] * count
        for path, part in parts:
            name = self._digest(path.encode())
            several = part.samples if isinstance(part, Raw) else part
            rows = [self._of_anything(value) for value in several] if type(several) is list else self._of_rows(part)
            prints = [
                None if before is None or row is None else hash((before, name, row))
                for before, row in zip(prints, rows, strict=True)
            ]
        return [NONE if number is None else number or 1 for number in prints]

    def _of_rows(self, tensor: Any) -> list[int | None]:
        """Of each row, as it would be alone."""
        head, whole = self._head(tensor.dtype, tensor.shape[1:]), _in_one_piece(tensor)
        memory, rows = _memory(whole), int(tensor.shape[0])
        width = len(memory) // rows
        return [hash((head, self._digest(memory[row * width : (row + 1) * width]))) for row in range(rows)]

    def _of_tensor(self, tensor: Any) -> int:
        whole = _in_one_piece(tensor)
        return hash((self._head(tensor.dtype, tensor.shape), self._digest(_memory(whole))))

    def _head(self, dtype: Any, shape: Any) -> int:
        return self._digest(f"{dtype}{tuple(shape)}".encode())

    def _of_anything(self, sample: Any) -> int | None:
        """None: its content cannot be had."""
        try:
            if isinstance(sample, sys.modules["torch"].Tensor):
                return self._of_tensor(sample)
            content = io.BytesIO()
            pickler = _Contents(content, protocol=4)
            pickler.fast = True  # that a part is used twice is not content
            pickler.dump(sample)
        except Exception:
            return None
        return self._digest(content.getvalue())


class _Contents(pickle.Pickler):
    """Pickles the content of tensors, not that of the storage they are a view of."""

    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        if kind is object:
            raise pickle.PicklingError("nothing tells it from another")
        if isinstance(value, sys.modules["torch"].Tensor):
            whole = _in_one_piece(value)
            return bytes, (f"{value.dtype}{tuple(value.shape)}".encode() + bytes(_memory(whole)),)
        if kind.__module__.startswith("PIL.") and hasattr(kind, "tobytes"):
            return bytes, (f"{value.mode}{value.size}".encode() + value.tobytes(),)
        return NotImplemented


def _sha1(raw: Any) -> int:
    return int.from_bytes(hashlib.sha1(raw, usedforsecurity=False).digest()[:8], "big", signed=True)


def _in_one_piece(tensor: Any) -> Any:
    plain = tensor.detach()
    if plain.layout is not sys.modules["torch"].strided or plain.is_quantized:
        raise pickle.PicklingError("its numbers are not in one piece")
    return plain.cpu().resolve_conj().resolve_neg().contiguous()


def _memory(tensor: Any) -> memoryview:
    """Not a copy: it is to be read while the tensor is at hand."""
    size = tensor.numel() * tensor.element_size()
    view: memoryview = _view(tensor.data_ptr(), size, 0x100) if size else memoryview(b"")  # to be read only
    return view


_view = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)(
    ("PyMemoryView_FromMemory", ctypes.pythonapi)
)
