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
from . import process_groups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
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
NEW_GROUP = at.COLLECTIVES.index("new_group")
GRADIENTS = at.COLLECTIVES.index("ddp_gradients") | at.PENDING
_ROW = Packing(f"{at.COLLECTIVE_WORDS}q")


class Ring:
    """The rows of this process."""

    __slots__ = ("_backwards", "announced", "groups", "serial", "words")

    def __init__(self, groups: process_groups.Groups) -> None:
        self.groups = groups
        self._backwards = 0, 0
        flight.follow(self._take)

    def _take(self, new: memoryview[int]) -> None:
        self.words = new
        self.serial = self.announced = 0

    def enter(self, kind: int, group: Any) -> int:
        """Write a row of what begins in C++ or takes no tensor; gives its place, 0 where this process is not in it."""
        if self.announced:
            self.settle()
        made = kind == NEW_GROUP
        known = self.groups.of(None if made else group)
        if known is None or not known.member:
            return 0
        if made:  # not one of the numbered: ranks that are not to be in it may do without the call
            self.groups.made += 1
            return self._write(kind, known.number, self.groups.made, sys._getframe(1))
        known.count += 1
        return self._write(kind, known.number, known.count, sys._getframe(1))

    def _write(self, kind: int, group: int, number: int, frame: FrameType) -> int:
        serial = self.serial = self.serial + 1
        place = at.COLLECTIVES_AT + (serial - 1) % at.COLLECTIVES_KEPT * at.COLLECTIVE_WORDS
        site, now, steps = self.groups.site(frame), monotonic_ns(), flight.state[flight.STEPS]
        _ROW.pack_into(self.words, place * 8, serial, group, number, kind, at.NONE, now, 0, site, 0, 0, 0, steps)
        self.words[at.W_COLLECTIVES] = serial
        return place

    def leave(self, place: int, serial: int, raised: bool = False) -> None:
        words = self.words
        if words[place] == serial:  # not in a child forked meanwhile, nor of a row used again
            now = monotonic_ns()
            words[place + at.C_LEFT] = -now if raised else now
            words[at.W_TOGETHER] += now - words[place + at.C_ENTERED]

    def announce(self, group: Any) -> None:
        """A backward pass will average the gradients, if there is one."""
        if self.announced:
            self.settle()
        known = self.groups.of(group)
        if known is not None:
            self._write(GRADIENTS, known.number, known.count + 1, _caller_of_module())
            self.announced, self._backwards = self.serial, _passes()

    def settle(self) -> None:
        """There was a backward pass since: it is over by now. Without one the row is free again."""
        place = at.COLLECTIVES_AT + (self.announced - 1) % at.COLLECTIVES_KEPT * at.COLLECTIVE_WORDS
        announced, self.announced = self.announced, 0
        if _passes() != self._backwards:
            words = self.words
            words[place + at.C_KIND] &= ~at.PENDING
            words[place + at.C_LEFT] = monotonic_ns()
            self.groups.counted(words[place + at.C_GROUP])
        elif announced == self.serial:
            self.serial -= 1


def _caller_of_module() -> FrameType:
    """Called by `announce`: the frame that leads to whoever called the module, without those in between where they are
    torch's as usual. Each frame that is looked at must be made, and that takes longer than all else here."""
    frame = sys._getframe(5)  # announce, _post_forward, forward, _call_impl, _wrapped_call_impl
    return frame if frame.f_globals.get("__name__") == "torch.nn.modules.module" else sys._getframe(1)


def _passes() -> tuple[int, int]:
    """Changes with every backward pass, also while the other hooks rest."""
    return flight.state[flight.BACKWARDS], flight.state[flight.LEFT]


def install(module: Any) -> None:
    """`module` is torch.distributed.distributed_c10d: torch.distributed takes its functions from it right after."""
    process_groups.install(module)
    ring = _rings[0] = Ring(process_groups.groups)
    for name, kind in FUNCTIONS.items():
        if hasattr(module, name) and not hasattr(module, SUPERSEDED.get(name, "")):
            _wrap(module, name, at.COLLECTIVES.index(kind), ring)
    _wrap_started(module, "new_group", NEW_GROUP, ring)


def _wrap(module: Any, name: str, kind: int, ring: Ring) -> None:
    original, clock, torch = getattr(module, name), monotonic_ns, sys.modules["torch"]
    code = unwrap(original).__code__
    names = code.co_varnames[: code.co_argcount]
    group_at = names.index("group") if "group" in names else len(names)
    tensor_at = next((names.index(each) for each in TENSOR if each in names), len(names))
    tensor_name = names[tensor_at] if tensor_at < len(names) else ""
    peers = [(each, names.index(each)) for each in PEER if each in names]
    asynchronous_at = names.index("async_op") if "async_op" in names else len(names)
    always, counts = at.ASYNC if name in ("isend", "irecv") else 0, int(kind not in process_groups.BETWEEN_TWO)
    dtypes = {getattr(torch, each): number for number, each in enumerate(at.DTYPES) if each}
    functions, tensor_type, pack = torch._C._len_torch_function_stack, torch.Tensor, _ROW.pack_into
    groups, find_site, state, steps = ring.groups, ring.groups.site, flight.state, flight.STEPS
    first_row, rows, width, last = at.COLLECTIVES_AT, at.COLLECTIVES_KEPT, at.COLLECTIVE_WORDS, at.W_COLLECTIVES

    compiling: Any = None

    def note(arguments: Any, options: Any) -> int:
        """Write a row; gives its place, 0 where this process is not one of the group."""
        given = len(arguments)
        if ring.announced:
            ring.settle()
        group = arguments[group_at] if given > group_at else options.get("group")
        known = groups.default if group is None else None
        if known is None:
            known = groups.of(group)
        if known is None or not known.member:
            return 0
        tensor = arguments[tensor_at] if given > tensor_at else options.get(tensor_name)
        waits_not = arguments[asynchronous_at] if given > asynchronous_at else options.get("async_op")
        described = sizes = more = 0
        if type(tensor) is tensor_type and not functions():  # a mode of the user's would see that we ask
            described, sizes, more = described_as(tensor)
        known.count += counts
        serial = ring.serial = ring.serial + 1
        place = first_row + (serial - 1) % rows * width
        site = find_site(sys._getframe(2))
        source = peer_of(arguments, options, given, known is groups.default) if peers else -1
        flags, words = kind | at.ASYNC if waits_not is True else kind | always, ring.words
        about = known.number, known.count, flags, source, clock(), 0, site, described, sizes, more, state[steps]
        pack(words, place * 8, serial, *about)
        words[last] = serial
        return place

    def described_as(tensor: Any) -> tuple[int, int, int]:
        shape = tensor.shape
        count = len(shape)
        described = dtypes.get(tensor.dtype, 0) | count << 6
        if count < 3:
            sizes = 0 if not count else (shape[0] & MAX_SIZE) << 32 | (shape[1] & MAX_SIZE if count > 1 else 0)
            return described, sizes, 0
        sizes = (shape[0] & MAX_SIZE) << 32 | shape[1] & MAX_SIZE
        return described, sizes, (shape[2] & MAX_SIZE) << 32 | (shape[3] & MAX_SIZE if count > 3 else 0)

    def peer_of(arguments: Any, options: Any, given: int, of_all: bool) -> int:
        for each, place in peers:
            peer = arguments[place] if given > place else options.get(each)
            if type(peer) is int:  # by its number in the group it may be another one of the world
                return peer if of_all or each[0] != "g" else at.NONE
        return at.NONE

    @wraps(original)
    def call(*arguments: Any, **options: Any) -> Any:
        nonlocal compiling
        if compiling is None:  # torch was still importing
            compiling = torch.compiler.is_dynamo_compiling
        if compiling():
            return original(*arguments, **options)
        place = 0
        try:
            place = note(arguments, options)
            serial = ring.serial
        except Exception as fault:
            guard.off("collectives", fault)
        try:
            answer = original(*arguments, **options)
        except BaseException:
            if place:
                ring.leave(place, serial, True)
            raise
        if place:
            ring.leave(place, serial)
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
    _wrap_refusing(module.DistributedDataParallel)


def _wrap_started(dist: Any, name: str, kind: int, ring: Any) -> None:
    """A function whose first argument is the group; or that makes one."""
    original = getattr(dist, name)

    @wraps(original)
    def started(group: Any = None, *arguments: Any, **options: Any) -> Any:
        place = 0
        try:
            place = ring.enter(kind, group)
            serial = ring.serial
        except Exception as fault:
            guard.off("collectives of DDP", fault)
        try:
            answer = original(group, *arguments, **options)
        except BaseException:
            if place:
                ring.leave(place, serial, True)
            raise
        if place:
            ring.leave(place, serial)
        return answer

    setattr(dist, name, started)
    guard.on(f"collective {name}", lambda: setattr(dist, name, original))


def _wrap_announced(kind: Any, ring: Any) -> None:
    """The forward pass of DistributedDataParallel prepares the averaging of gradients."""
    original, torch = kind._post_forward, sys.modules["torch"]
    grad_enabled = torch.is_grad_enabled

    @wraps(original)
    def _post_forward(self: Any, output: Any) -> Any:
        if not torch.compiler.is_dynamo_compiling():
            try:
                if grad_enabled() and self.require_backward_grad_sync:
                    ring.announce(self.process_group)
            except Exception as fault:
                guard.off("gradients of DDP", fault)
        return original(self, output)

    hiding.stand_aside(_post_forward)  # type: ignore[arg-type]  # as above
    kind._post_forward = _post_forward
    guard.on("gradients of DDP", lambda: setattr(kind, "_post_forward", original))


def _wrap_refusing(kind: Any) -> None:
    """A forward pass that it refuses, because parameters got no gradient in the pass before."""
    original, torch = kind._pre_forward, sys.modules["torch"]

    @wraps(original)
    def _pre_forward(self: Any, *inputs: Any, **options: Any) -> Any:
        if torch.compiler.is_dynamo_compiling():
            return original(self, *inputs, **options)
        try:
            return original(self, *inputs, **options)
        except RuntimeError as error:
            guard.attempt("unused parameters", _refused, self, error, sys._getframe(1))
            raise

    hiding.stand_aside(_pre_forward)  # type: ignore[arg-type]  # `wraps` hides that it is a function
    kind._pre_forward = _pre_forward
    guard.on("unused parameters", lambda: setattr(kind, "_pre_forward", original))


def _refused(model: Any, error: RuntimeError, frame: FrameType) -> None:
    from . import ddp_refusals

    ddp_refusals.tell(model, error, frame)
