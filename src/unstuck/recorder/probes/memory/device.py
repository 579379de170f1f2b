"""Memory of the GPU: what torch's allocator has handed out, sampled in full steps; and who holds it, at death.

Only where the script itself has begun to use CUDA. The allocator's own counters are read: nothing is synchronised.
"""

from __future__ import annotations

import sys
from time import monotonic, thread_time

from ... import flight, guard
from ... import layout as at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

GAP = 0.5
POINTS = 64
SCAN_SECONDS = 1.0
SHAPES = 6
_next = 0.0
_stride = _unkept = 0
curve: list[tuple[int, int]] = []
"""(step, bytes), thinned out as it grows longer."""


def sample() -> None:
    """Called in full steps before backward, when the activations of the step are there; acts twice a second at most."""
    global _next, _stride, _unkept, curve
    now = monotonic()
    if now < _next:
        return
    _next = now + GAP
    handed_out = allocated()
    if handed_out is None:
        return
    flight.words[at.W_DEVICE_BYTES] = handed_out
    _unkept += 1
    if _unkept < _stride:
        return
    _unkept = 0
    curve.append((flight.steps(), handed_out))
    if len(curve) >= POINTS:
        curve = curve[::2]
        _stride = max(2, 2 * _stride)


def allocated() -> int | None:
    """Bytes handed out on the present device; None where CUDA was never begun in this process."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return None
    return int(cuda.memory_allocated())


def at_death(error: BaseException) -> dict[str, object] | None:
    """Of an exception of the GPU's allocator: its state, and the living tensors by owner. None for all others."""
    if not any(type(each).__name__ == "OutOfMemoryError" for each in _chain(error)):
        return None
    torch: Any = sys.modules["torch"]
    if not torch.cuda.is_initialized():
        return None
    try:
        return _state(torch)
    except Exception as fault:
        guard.off("device", fault)
        return None


def _state(torch: Any) -> dict[str, object]:
    number = torch.cuda.current_device()
    told: dict[str, object] = {
        "device": number,
        "name": torch.cuda.get_device_name(number),
        "total": torch.cuda.get_device_properties(number).total_memory,
        "allocated": torch.cuda.memory_allocated(number),
        "reserved": torch.cuda.memory_reserved(number),
        "most_allocated": torch.cuda.max_memory_allocated(number),
        "curve": [list(point) for point in curve],
    }
    try:
        told["free"] = torch.cuda.mem_get_info(number)[0]
    except Exception:  # not even that may be had from a device in trouble
        pass
    told.update(owners(torch))
    return told


def _chain(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    here: BaseException | None = error
    while here is not None and here not in found and len(found) < 8:
        found.append(here)
        here = here.__cause__ or here.__context__
    return found


def owners(torch: Any) -> dict[str, object]:
    """Bytes of living CUDA tensors: parameters, gradients, optimizer state, and the others by shape."""
    import gc

    until = thread_time() + SCAN_SECONDS
    tensors: list[Any] = []
    state: set[int] = set()
    for place, thing in enumerate(gc.get_objects()):
        kind = type(thing)
        if kind is torch.Tensor or kind is torch.nn.Parameter:
            if thing.is_cuda:
                tensors.append(thing)
        elif issubclass(kind, torch.optim.Optimizer):
            each_state = thing.__dict__.get("state") or {}
            state.update(id(v) for each in each_state.values() if type(each) is dict for v in each.values())
        if place & 1023 == 0 and thread_time() > until:
            break
    known = {id(each): each for each in tensors}
    gradients: set[int] = set()
    for each in tensors:
        if each.is_leaf and each.grad is not None:
            gradients.add(id(each.grad))
            known[id(each.grad)] = each.grad
    return _sums(torch, list(known.values()), state, gradients)


def _sums(torch: Any, tensors: list[Any], state: set[int], gradients: set[int]) -> dict[str, object]:
    sums = {"parameters": 0, "gradients": 0, "optimizer": 0, "others": 0}
    shapes: dict[tuple[str, str, bool], list[int]] = {}
    seen: set[int] = set()
    for each in tensors:
        storage = each.untyped_storage()
        if storage.data_ptr() in seen:
            continue
        seen.add(storage.data_ptr())
        owner = "others"
        if type(each) is torch.nn.Parameter:
            owner = "parameters"
        elif id(each) in gradients:
            owner = "gradients"
        elif id(each) in state:
            owner = "optimizer"
        else:
            key = (str(tuple(each.shape)), str(each.dtype).rpartition(".")[2], each.grad_fn is not None)
            count = shapes.setdefault(key, [0, 0])
            count[0], count[1] = count[0] + 1, count[1] + storage.nbytes()
        sums[owner] += storage.nbytes()
    largest = sorted(shapes.items(), key=lambda pair: -pair[1][1])[:SHAPES]
    told = [
        {"shape": key[0], "dtype": key[1], "graph": key[2], "count": count, "bytes": size}
        for key, (count, size) in largest
    ]
    return {"owners": sums, "shapes": told}
