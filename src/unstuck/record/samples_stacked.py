"""Samples of a data set put together part by part, whatever they are made of; and a print of each to know it again."""

from __future__ import annotations

import sys

from .batch_parts import DEEP, PARTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

WORDS = 256
"""Words of a sample, spread over it, that make its print."""
_FACTOR = -7046029254386353131  # 2**64 over the golden ratio, as a signed word
_weights: dict[int, Any] = {}


def stacked(samples: list[Any], path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """(path, tensor with a row a sample | list of tensors of different shapes | list of texts)."""
    torch = sys.modules["torch"]
    kind = type(samples[0])
    whole = _whole(samples) if kind is torch.Tensor else None
    if whole is not None:
        yield path, whole
    elif kind in (tuple, list) or (issubclass(kind, tuple) and hasattr(kind, "_fields")):
        width = len(samples[0])
        if depth < DEEP and width <= PARTS and all(len(sample) == width for sample in samples):
            names = [f".{name}" for name in getattr(kind, "_fields", ())] or [f"[{place}]" for place in range(width)]
            for name, column in zip(names, zip(*samples, strict=True), strict=True):
                yield from stacked(list(column), path + name, depth + 1)
    elif issubclass(kind, dict):
        if depth < DEEP:
            for key in list(samples[0])[:PARTS]:
                if type(key) in (str, int) and all(key in sample for sample in samples):
                    yield from stacked([sample[key] for sample in samples], f"{path}[{key!r}]", depth + 1)
    elif any(type(each) is not kind for each in samples):
        return
    elif kind is str:
        yield path, samples
    elif kind in (int, float, bool):
        if kind is not int or all(abs(each) < 1 << 62 for each in samples):
            types = {int: torch.int64, float: torch.float64, bool: torch.bool}
            yield path, torch.tensor(samples, dtype=types[kind], device="cpu")
    else:
        tensors = [_tensor(each) for each in samples]
        if all(each is not None for each in tensors):
            alike = all(each.shape == tensors[0].shape and each.dtype == tensors[0].dtype for each in tensors)
            yield path, torch.stack(tensors) if alike else tensors


def _whole(samples: list[Any]) -> Any:
    """Tensors of one shape in one; None where they are not such."""
    torch = sys.modules["torch"]
    try:
        whole = torch.stack(samples).detach()
    except (RuntimeError, TypeError):
        return None
    return whole if whole.device.type == "cpu" and whole.layout is torch.strided else None


def _tensor(value: Any) -> Any:
    """A tensor in main memory; also of an array, a number of numpy's, or a picture."""
    torch = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        plain = value.detach()
        return plain if plain.device.type == "cpu" and plain.layout is torch.strided else None
    kind = type(value)
    if kind.__module__ == "numpy":
        numpy = sys.modules["numpy"]
        array = numpy.asarray(value)
        if array.dtype.kind not in "biuf" or (array.dtype.kind == "u" and array.dtype.itemsize > 1):
            return None
        return torch.from_numpy(numpy.array(array)) if array.size else None
    if kind.__module__.startswith("PIL.") and value.mode in ("L", "RGB", "RGBA"):
        bands = len(value.mode)
        raw = torch.frombuffer(bytearray(value.tobytes()), dtype=torch.uint8)
        return raw.reshape(value.size[1], value.size[0], bands)
    return None


def prints(parts: list[tuple[str, Any]], count: int) -> list[int]:
    """A number for each sample, the same for the same content; of large samples from some of it only."""
    torch = sys.modules["torch"]
    whole = torch.zeros(count, dtype=torch.int64, device="cpu")
    others = [0] * count
    for _, part in parts:
        if type(part) is list:
            for place, each in enumerate(part):
                one = hash(each) if type(each) is str else int(_words(each.unsqueeze(0))[0])
                others[place] = hash((others[place], one))
        else:
            whole = whole * _FACTOR + _words(part)
    return [hash(pair) for pair in zip(whole.tolist(), others, strict=True)]


def _words(tensor: Any) -> Any:
    torch = sys.modules["torch"]
    flat = tensor.reshape(tensor.shape[0], -1)
    if not flat.shape[1]:
        return torch.zeros(flat.shape[0], dtype=torch.int64, device="cpu")
    width = flat.element_size()
    step = max(1, flat.shape[1] // (WORDS * 8 // width)) if flat.shape[1] * width > WORDS * 8 else 1
    raw = flat[:, ::step].contiguous()
    if raw.shape[1] * width % 8 == 0 and raw.data_ptr() % 8 == 0:
        words = raw.view(torch.int64)
    elif width < 8:
        whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[width]
        words = raw.view(whole).to(torch.int64)
    else:
        words = raw.view(torch.int64)
    count = int(words.shape[1])
    if count not in _weights:
        places = (torch.arange(count, device="cpu") + 1) * _FACTOR
        _weights[count] = (places ^ (places >> 29)) * _FACTOR | 1
    return ((words + 1) * _weights[count]).sum(1) * _FACTOR + count


def exact(parts: list[tuple[str, Any]], count: int) -> list[str]:
    """A digest of everything in each sample."""
    import ctypes
    import hashlib

    digests = [hashlib.blake2b(digest_size=16) for _ in range(count)]
    for path, part in parts:
        for place in range(count):
            each = part[place]
            digests[place].update(f"{path}|".encode())
            if type(each) is str:
                digests[place].update(each.encode("utf-8", "replace"))
                continue
            each = each.contiguous()
            digests[place].update(f"{each.dtype}{tuple(each.shape)}".encode())
            if each.numel():
                digests[place].update(ctypes.string_at(each.data_ptr(), each.numel() * each.element_size()))
    return [digest.hexdigest() for digest in digests]
