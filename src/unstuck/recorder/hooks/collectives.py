"""Seam: what ranks call together, through the functions of torch.distributed; each call is a row in the flight file.

A call costs two readings of the clock and one store. What DistributedDataParallel starts from C++ is known by what
surrounds it: its check of parameters and its broadcasts are functions of torch, and the averaging of gradients is
announced by a forward pass that prepares it; it counts once a backward pass has begun.
"""

from __future__ import annotations

import sys
from functools import wraps
from inspect import unwrap
from struct import Struct as Packing
from time import monotonic_ns

from .. import flight, guard, hiding
from .. import layout as at
from . import ddp_refusals, process_groups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FUNCTIONS = {  # of torch.distributed: the kind it is
    "all_reduce": "all_reduce",
    "all_reduce_coalesced": "all_reduce",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "all_gather": "all_gather",
    "all_gather_into_tensor": "all_gather",
    "all_gather_single": "all_gather",
    "all_gather_coalesced": "all_gather",
    "gather": "gather",
    "scatter": "scatter",
    "reduce_scatter": "reduce_scatter",
    "reduce_scatter_tensor": "reduce_scatter",
    "reduce_scatter_single": "reduce_scatter",
    "all_to_all": "all_to_all",
    "all_to_all_single": "all_to_all",
    "barrier": "barrier",
    "monitored_barrier": "barrier",
    "send": "send",
    "isend": "send",
    "recv": "recv",
    "irecv": "recv",
}
SUPERSEDED = {"all_gather_into_tensor": "all_gather_single", "reduce_scatter_tensor": "reduce_scatter_single"}
"""Where torch has the second, the first calls it."""
TENSOR = ("input_tensor", "tensor", "output", "tensors", "output_tensor_list")  # parameters, the first that is there
PEER = ("src", "dst", "group_src", "group_dst")
MAX_SIZE = (1 << 31) - 1
_ROW = Packing(f"{at.COLLECTIVE_WORDS}q")


class Ring:
    """The rows of this process."""

    __slots__ = ("_announced", "_backwards", "_dtypes", "_functions", "_tensor", "_words", "groups", "serial")

    def __init__(self, torch: Any, groups: process_groups.Groups) -> None:
        self.groups, self.serial = groups, 0
        self._announced, self._backwards = 0, (0, 0)
        self._dtypes = {getattr(torch, name): number for number, name in enumerate(at.DTYPES) if name}
        self._functions, self._tensor = torch._C._len_torch_function_stack, torch.Tensor
        flight.follow(self._take)

    def _take(self, new: memoryview[int]) -> None:
        self._words = new
        self.serial = self._announced = 0

    def enter(self, kind: int, group: Any, tensor: Any, peer: Any, began: int) -> int:
        """Write a row; gives its serial, 0 where this process is not one of the group."""
        if self._announced:
            self._settle()
        known = self.groups.of(group)
        if known is None or not known.member:
            return 0
        number = known.count
        if kind & 0xFF not in process_groups.BETWEEN_TWO:
            number = known.count = number + 1
        self._write(kind, known.number, number, peer, began, tensor)
        return self.serial

    def _write(self, kind: int, group: int, number: int, peer: Any, began: int, tensor: Any) -> None:
        described = first = more = 0
        if type(tensor) is self._tensor and not self._functions():  # a mode of the user's would see that we ask
            sizes = tensor.shape
            count = len(sizes)
            described = self._dtypes.get(tensor.dtype, 0) | count << 6
            if count:
                first = min(sizes[0], MAX_SIZE) << 32 | (min(sizes[1], MAX_SIZE) if count > 1 else 0)
            if count > 2:
                more = min(sizes[2], MAX_SIZE) << 32 | (min(sizes[3], MAX_SIZE) if count > 3 else 0)
        serial = self.serial = self.serial + 1
        place = at.COLLECTIVES_AT + (serial - 1) % at.COLLECTIVES_KEPT * at.COLLECTIVE_WORDS
        site = self.groups.site(sys._getframe(3))
        source = peer if type(peer) is int else at.NONE
        steps = flight.state[flight.STEPS]
        row = (serial, group, number, kind, source, began, 0, site, described, first, more, steps)
        _ROW.pack_into(self._words, place * 8, *row)
        self._words[at.W_COLLECTIVES] = serial

    def leave(self, serial: int, raised: bool) -> None:
        place = at.COLLECTIVES_AT + (serial - 1) % at.COLLECTIVES_KEPT * at.COLLECTIVE_WORDS
        words = self._words
        if words[place] == serial:  # not in a child forked meanwhile, nor of a row used again
            now = monotonic_ns()
            words[place + at.C_LEFT] = -now if raised else now
            words[at.W_TOGETHER] += now - words[place + at.C_ENTERED]

    def announce(self, group: Any, began: int) -> None:
        """A backward pass will average the gradients, if there is one."""
        if self._announced:
            self._settle()
        known = self.groups.of(group)
        if known is not None:
            self._write(
                at.COLLECTIVES.index("ddp_gradients") | at.PENDING, known.number, known.count + 1, None, began, None
            )
            self._announced, self._backwards = self.serial, _passes()

    def _settle(self) -> None:
        """There was a backward pass since: it is over by now. Without one the row is free again."""
        place = at.COLLECTIVES_AT + (self._announced - 1) % at.COLLECTIVES_KEPT * at.COLLECTIVE_WORDS
        announced, self._announced = self._announced, 0
        if _passes() != self._backwards:
            words = self._words
            words[place + at.C_KIND] &= ~at.PENDING
            words[place + at.C_LEFT] = monotonic_ns()
            self.groups.counted(words[place + at.C_GROUP])
        elif announced == self.serial:
            self.serial -= 1


def _passes() -> tuple[int, int]:
    """Changes with every backward pass, also while the other hooks rest."""
    return flight.state[flight.BACKWARDS], flight.state[flight.LEFT]


def install(module: Any) -> None:
    """`module` is torch.distributed.distributed_c10d: torch.distributed takes its functions from it right after."""
    process_groups.install(module)
    ring = _rings[0] = Ring(sys.modules["torch"], process_groups.groups)
    for name, kind in FUNCTIONS.items():
        if hasattr(module, name) and not hasattr(module, SUPERSEDED.get(name, "")):
            _wrap(module, name, at.COLLECTIVES.index(kind), ring)


def _wrap(module: Any, name: str, kind: int, ring: Ring) -> None:
    original, clock = getattr(module, name), monotonic_ns
    code = unwrap(original).__code__
    names = code.co_varnames[: code.co_argcount]
    group_at = names.index("group") if "group" in names else len(names)
    tensor_at = next((names.index(each) for each in TENSOR if each in names), len(names))
    tensor_name = names[tensor_at] if tensor_at < len(names) else ""
    peers = [(each, names.index(each)) for each in PEER if each in names]
    asynchronous_at = names.index("async_op") if "async_op" in names else len(names)
    always = at.ASYNC if name in ("isend", "irecv") else 0
    compiling = sys.modules["torch"].compiler.is_dynamo_compiling if hasattr(sys.modules["torch"], "compiler") else None

    def enter(arguments: Any, options: Any) -> int:
        given = len(arguments)
        group = arguments[group_at] if given > group_at else options.get("group")
        tensor = arguments[tensor_at] if given > tensor_at else options.get(tensor_name)
        waits_not = arguments[asynchronous_at] if given > asynchronous_at else options.get("async_op")
        peer = None
        for each, place in peers:
            peer = arguments[place] if given > place else options.get(each)
            if peer is not None:
                break
        flags = kind | at.ASYNC if waits_not is True else kind | always
        return ring.enter(flags, group, tensor, peer, clock())

    @wraps(original)
    def call(*arguments: Any, **options: Any) -> Any:
        nonlocal compiling
        if compiling is None:  # torch was still importing
            compiling = sys.modules["torch"].compiler.is_dynamo_compiling
        if compiling():
            return original(*arguments, **options)
        try:
            serial = enter(arguments, options)
        except Exception as fault:
            serial = 0
            guard.off("collectives", fault)
        try:
            answer = original(*arguments, **options)
        except BaseException:
            if serial:
                ring.leave(serial, True)
            raise
        if serial:
            ring.leave(serial, False)
        return answer

    hiding.stand_aside(call)  # type: ignore[arg-type]  # `wraps` hides that it is a function
    setattr(module, name, call)
    guard.on(f"collective {name}", lambda: setattr(module, name, original))


_rings: list[Any] = [None]


def install_ddp(module: Any) -> None:
    """`module` is torch.nn.parallel.distributed."""
    ring, dist = _rings[0], sys.modules.get("torch.distributed")
    if ring is None or dist is None:
        return
    for name, kind in (
        ("_verify_params_across_processes", "ddp_parameters"),
        ("_broadcast_coalesced", "ddp_broadcast"),
    ):
        if hasattr(dist, name):
            _wrap_started(dist, name, at.COLLECTIVES.index(kind), ring)
    _wrap_announced(module.DistributedDataParallel, ring)
    ddp_refusals.install(module.DistributedDataParallel)


def _wrap_started(dist: Any, name: str, kind: int, ring: Any) -> None:
    """A function of C++ whose first argument is the group."""
    original = getattr(dist, name)

    @wraps(original)
    def started(group: Any, *arguments: Any, **options: Any) -> Any:
        serial = 0
        try:
            serial = ring.enter(kind, group, None, None, monotonic_ns())
        except Exception as fault:
            guard.off("collectives of DDP", fault)
        try:
            answer = original(group, *arguments, **options)
        except BaseException:
            if serial:
                ring.leave(serial, True)
            raise
        if serial:
            ring.leave(serial, False)
        return answer

    setattr(dist, name, started)
    guard.on(f"collective {name}", lambda: setattr(dist, name, original))


def _wrap_announced(kind: Any, ring: Any) -> None:
    """The forward pass of DistributedDataParallel prepares the averaging of gradients."""
    original, torch = kind._post_forward, sys.modules["torch"]

    def announce(model: Any) -> None:
        if torch.is_grad_enabled() and model.require_backward_grad_sync:
            ring.announce(model.process_group, monotonic_ns())

    @wraps(original)
    def _post_forward(self: Any, output: Any) -> Any:
        if not torch.compiler.is_dynamo_compiling():
            guard.attempt("gradients of DDP", announce, self)
        return original(self, output)

    hiding.stand_aside(_post_forward)  # type: ignore[arg-type]  # as above
    kind._post_forward = _post_forward
    guard.on("gradients of DDP", lambda: setattr(kind, "_post_forward", original))
