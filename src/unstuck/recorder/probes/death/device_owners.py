"""Who holds a GPU's memory when its allocator has no more to give: the living tensors that can be reached.

From the frames of the traceback and the globals of the user's modules; bounded in number and in time. What is not
reached so is held by autograd graphs, or inside torch.
"""

from __future__ import annotations

import sys
import types
from collections import deque
from functools import partial
from itertools import islice
from time import thread_time

from ... import dispatch, objects, user_code
from ...records.deaths import DeviceState, Owners, TensorsAlike
from . import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

SECONDS = 1.0
THINGS = 300_000
WIDE = 100_000  # elements of one container
SHAPES = 6
_ATOMS = objects.ids(
    type(None), bool, int, float, complex, str, bytes, types.ModuleType, types.CodeType, types.FrameType
)
_CONTAINERS: tuple[Any, ...] = (list, tuple, set, frozenset, deque)


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
    found = Tensors(torch)
    found.reach(roots(errors.chained(error)))
    owners, shapes = found.sums()
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
        all_seen=found.all_seen,
    )


def roots(raised: Iterable[BaseException]) -> Iterator[Any]:
    """Locals of the frames it came through, and the globals of the user's modules."""
    for error in raised:
        for step in errors.steps(errors.trace_of(error)):
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
        self._found: dict[int, Any] = {}
        self._state: set[int] = set()
        self._gradients: set[int] = set()
        self.all_seen = True

    def reach(self, roots: Iterable[Any]) -> None:
        until = thread_time() + SECONDS
        waiting = deque(roots)
        seen: set[int] = set()
        while waiting:
            thing = waiting.popleft()
            if id(thing) in seen or id(type(thing)) in _ATOMS:
                continue
            seen.add(id(thing))
            if len(seen) > THINGS or (len(seen) & 255 == 0 and thread_time() > until):
                self.all_seen = False
                return
            try:
                waiting.extend(islice(self._look(thing), WIDE))
            except (RuntimeError, TypeError, AttributeError):  # another thread changes it; or an odd type
                continue

    def _look(self, thing: Any) -> Iterator[Any]:
        kind = type(thing)
        if kind is self._plain or kind is self._parameter:
            self._note(thing)
            return iter(())
        if issubclass(kind, self._optimizer):
            state: Any = (objects.instance_dict(thing) or {}).get("state")
            each_state = dict.values(state) if issubclass(type(state), dict) else ()
            self._state.update(id(v) for each in each_state if type(each) is dict for v in each.values())
        return inside(thing)

    def _note(self, tensor: Any) -> None:
        if tensor.device.type != self._device:
            return
        self._found[id(tensor)] = tensor
        if tensor.is_leaf and tensor.grad is not None:
            self._gradients.add(id(tensor.grad))
            self._found[id(tensor.grad)] = tensor.grad

    def sums(self) -> tuple[Owners, list[TensorsAlike]]:
        """Bytes by owner, each storage once; and the largest of the others by shape."""
        sums = {"parameters": 0, "gradients": 0, "optimizer": 0, "others": 0}
        alike: dict[tuple[tuple[int, ...], str, bool], list[int]] = {}
        seen: set[int] = set()
        for each in self._found.values():
            storage = each.untyped_storage()
            if storage.data_ptr() in seen:
                continue
            seen.add(storage.data_ptr())
            owner = self._owner(each)
            sums[owner] += storage.nbytes()
            if owner == "others":
                key = (tuple(each.shape), str(each.dtype).rpartition(".")[2], each.grad_fn is not None)
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


def inside(thing: Any) -> Iterator[Any]:
    """What a thing holds, without running anything of the user's."""
    kind = type(thing)
    if issubclass(kind, dict):
        yield from dict.keys(thing)
        yield from dict.values(thing)
    elif issubclass(kind, _CONTAINERS):
        base = next(base for base in _CONTAINERS if issubclass(kind, base))
        yield from base.__iter__(thing)
    elif kind is types.FunctionType:
        yield from thing.__closure__ or ()
        yield from thing.__defaults__ or ()
    elif kind is types.CellType:
        yield thing.cell_contents
    elif kind is types.MethodType:
        yield thing.__self__
    elif kind is partial:
        yield from (thing.func, thing.args, thing.keywords)
    elif kind is types.GeneratorType:
        if thing.gi_frame is not None:
            yield from objects.locals_of(thing.gi_frame).values()
    elif issubclass(kind, type):
        if objects.file_of(thing):
            yield from list(objects.class_dict(thing).values())
    else:
        yield from (objects.instance_dict(thing) or {}).values()
