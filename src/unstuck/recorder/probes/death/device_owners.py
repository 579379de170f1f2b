"""Who holds a GPU's memory when its allocator has no more to give: the living tensors that can be reached.

From the frames of the traceback and the globals of the user's modules; bounded in number and in time. What is not
reached so is held by autograd graphs, or inside torch.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from ... import dispatch, objects, user_code
from ...records.deaths import DeviceState, Owners, TensorsAlike
from ..object_walk import ObjectWalk, held_by
from . import tracebacks

SECONDS = 1.0  # of searching: the training is over
THINGS = 300_000  # that are looked at
WIDE = 100_000  # elements of one container
SHAPES = 6  # of tensors that are listed


def state(error: BaseException) -> DeviceState | None:
    """Of an exception of the GPU's allocator; None where the script has not begun to use CUDA."""
    torch: Any = sys.modules["torch"]
    if not torch.cuda.is_initialized():
        return None
    number = torch.cuda.current_device()
    try:
        free = torch.cuda.mem_get_info(number)[0]
    except Exception:  # not even that may be had from a device in trouble
        free = None
    tensors = Tensors(torch)
    tensors.reach(roots(tracebacks.chained(error)))
    owners, shapes = tensors.sums()
    return DeviceState(
        device=number,
        name=torch.cuda.get_device_name(number),
        total=torch.cuda.get_device_properties(number).total_memory,
        allocated=torch.cuda.memory_allocated(number),
        reserved=torch.cuda.memory_reserved(number),
        free=free,
        curve=list(dispatch.probe("device").curve),
        owners=owners,
        shapes=shapes,
        all_seen=tensors.all_seen,
    )


def roots(raised: Iterable[BaseException]) -> Iterator[Any]:
    """Locals of the frames it came through, and the globals of the user's modules."""
    for error in raised:
        for step in tracebacks.steps(error):
            if step.tb_frame.f_code.co_flags & objects.FAST == objects.FAST:
                yield from objects.locals_of(step.tb_frame).values()
    for module in list(sys.modules.values()):
        space = objects.module_dict(module) or {}
        file = space.get("__file__")
        if type(file) is str and user_code.is_user_file(file):
            yield from list(space.values())


class Tensors:
    """Tensors on a device, and which of them an optimizer has as its state."""

    def __init__(self, torch: Any, device: str = "cuda") -> None:
        self._plain, self._parameter, self._optimizer = torch.Tensor, torch.nn.Parameter, torch.optim.Optimizer
        self._device = device
        self._tensors: dict[int, Any] = {}
        self._state: set[int] = set()
        self._gradients: set[int] = set()
        self.all_seen = True

    def reach(self, roots: Iterable[Any]) -> None:
        walk = ObjectWalk(self._inside, THINGS, seconds=SECONDS)
        for _, thing in walk.over(("", root) for root in roots):
            kind = type(thing)
            if kind is self._plain or kind is self._parameter:
                self._note(thing)
            elif issubclass(kind, self._optimizer):
                state: Any = (objects.instance_dict(thing) or {}).get("state")
                entries = dict.values(state) if issubclass(type(state), dict) else ()
                self._state.update(id(v) for entry in entries if type(entry) is dict for v in entry.values())
        self.all_seen = walk.complete

    def _inside(self, thing: Any) -> Iterable[tuple[str, Any]]:
        return () if type(thing) is self._plain or type(thing) is self._parameter else held_by(thing, WIDE)

    def _note(self, tensor: Any) -> None:
        if tensor.device.type != self._device:
            return
        self._tensors[id(tensor)] = tensor
        if tensor.is_leaf and tensor.grad is not None:
            self._gradients.add(id(tensor.grad))
            self._tensors[id(tensor.grad)] = tensor.grad

    def sums(self) -> tuple[Owners, list[TensorsAlike]]:
        """Bytes by owner, each storage once; and the largest of the others by shape."""
        sums = {"parameters": 0, "gradients": 0, "optimizer": 0, "others": 0}
        alike: dict[tuple[tuple[int, ...], str, bool], list[int]] = {}
        seen: set[int] = set()
        for tensor in self._tensors.values():
            storage = tensor.untyped_storage()
            if storage.data_ptr() in seen:
                continue
            seen.add(storage.data_ptr())
            owner = self._owner(tensor)
            sums[owner] += storage.nbytes()
            if owner == "others":
                key = (tuple(tensor.shape), str(tensor.dtype).rpartition(".")[2], tensor.grad_fn is not None)
                count = alike.setdefault(key, [0, 0])
                count[0], count[1] = count[0] + 1, count[1] + storage.nbytes()
        largest = sorted(alike.items(), key=lambda pair: -pair[1][1])[:SHAPES]
        shapes = [
            TensorsAlike(shape=list(shape), dtype=dtype, graph=graph, count=count, bytes=size)
            for (shape, dtype, graph), (count, size) in largest
        ]
        return Owners(**sums), shapes

    def _owner(self, tensor: Any) -> str:
        if type(tensor) is self._parameter:
            return "parameters"
        if id(tensor) in self._gradients:
            return "gradients"
        return "optimizer" if id(tensor) in self._state else "others"
