"""Seam: the backward pass. `Tensor.backward` calls `torch.autograd.backward`, so one wrapper serves both.

On the CPU the loss is read at every call: whether it is NaN, or stands out, can be explained only while its graph is
there. All else is done in sampled steps. While the hooks rest, the wrapper is out where steps are short, and does
nothing but read the loss where they are longer.
"""

from __future__ import annotations

import math
import os
import sys
from functools import wraps
from sys import float_info
from time import monotonic_ns

from .. import dispatch, flight, guard, hiding, resting, stepping
from .. import layout as at
from . import around_step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

GATHERED = 63  # losses that are handed over at one time, less one
ALL = 12_000  # losses that are all read, however short the steps
PASSED = 24  # backward passes from which their pace is taken
READING, SHARE = 6_000, 0.003  # nanoseconds that reading one takes, caches cold, and the part of the time for it
EVERY = 7  # on a GPU two losses of every eight are read


class Reader:
    """Losses read and not yet handed over, and the limits between which one needs no word."""

    __slots__ = ("_asked", "_read", "high", "low", "values")

    def __init__(self) -> None:
        self.values: list[float] = []
        self.low, self.high = -float_info.max, float_info.max
        self._read = self._asked = 0

    def hand_over(self) -> None:
        if self.values:
            values, self.values = self.values, []
            dispatch.emit("losses_read", values, None)
            self.ask()

    def ask(self) -> None:
        """What the probe has learned of the loss sets the limits."""
        if "learning" in guard.OFF:
            self.low, self.high = -float("inf"), float("inf")
        else:
            self.low, self.high = dispatch.probe("learning").limits()
        resting.resting.calm = self.low <= self.high
        self._ration()

    def _ration(self) -> None:
        """Reading a loss takes next to nothing, but where steps are short that is felt: the first are all read, and
        where one stands out, or may at any step; then so many that it is a small part of the time."""
        state, now = flight.state, monotonic_ns()
        passed = state[flight.BACKWARDS] - self._read
        if state[flight.BACKWARDS] < ALL or self.low > self.high or resting.rests():
            state[flight.SKIPPED] = 0
        elif passed >= PASSED:
            each = (now - self._asked) / passed
            wanted = int(READING / SHARE / max(each, 1.0))  # one in so many
            state[flight.SKIPPED] = min(31, (1 << wanted.bit_length()) - 1) if wanted > 1 else 0
        if passed >= PASSED:
            self._read, self._asked = state[flight.BACKWARDS], now

    def note(self, root: Any, frame: FrameType) -> None:
        """One loss of an ordinary step, on the CPU: kept for later unless it stands out."""
        value = around_step.unscaled(root).item()
        if type(value) is not float or not self.low <= value <= self.high:
            self.read(root, frame)
            return
        self.values.append(value)
        if len(self.values) > GATHERED:
            self.hand_over()

    def read(self, root: Any, frame: FrameType) -> None:
        """The value of one loss, at once."""
        self.hand_over()
        if root.is_cpu:
            value = around_step.unscaled(root).item()
            if type(value) is float:
                if self.low <= value <= self.high:
                    dispatch.emit("losses_read", [value], frame)
                else:
                    dispatch.emit("loss_stands_out", root, value, frame)
        elif root.is_cuda:
            resting.resting.on_gpu = True
            dispatch.emit("gpu_loss", root, frame, around_step.unscaled(root))
        self.ask()


_reader = Reader()
last = _reader.hand_over  # at the end of the process


def install(module: Any) -> None:
    """`module` is torch.autograd."""
    torch = sys.modules["torch"]  # still importing: it has no `compiler` yet
    original, state, reader = module.backward, flight.state, _reader
    full, close, skipped, backwards = flight.FULL, flight.CLOSE, flight.SKIPPED, flight.BACKWARDS
    tensor_type = torch.Tensor
    functions, dispatches = torch._C._len_torch_function_stack, torch._C._len_torch_dispatch_stack
    scaled = around_step.scaled

    exact = bool(os.environ.get("UNSTUCK_TRACE_NAN"))  # each loss of a GPU is waited for

    passed = passes_over = 0  # losses, while the other hooks rest; and the bits of those that are not read

    def compiling() -> bool:
        return bool(torch.compiler.is_dynamo_compiling())

    def looked_at(number: int, arguments: Any, options: Any) -> Any:
        nonlocal compiling
        compiling = torch.compiler.is_dynamo_compiling  # it is there by now: two lookups less from here on
        if state[close]:
            return closely(arguments, options)
        root: Any = arguments[0] if arguments else options.get("tensors")
        if functions() or dispatches():  # modes of the user's: even asking for a size would be seen
            apart(root)
        elif type(root) is tensor_type and root.is_cpu and root.numel() == 1:
            value = (root if scaled[1] is None else around_step.unscaled(root)).item()
            if type(value) is float and reader.low <= value <= reader.high:
                reader.values.append(value)
            else:
                apart(root)
        elif exact or number & EVERY < 2:
            apart(root)
        if state[full] or not number & GATHERED:
            return closely(arguments, options)
        return original(*arguments, **options)

    def closely(arguments: Any, options: Any) -> Any:
        frame = sys._getframe(3)
        guard.attempt("backward", before, arguments[0] if arguments else options.get("tensors"), frame)
        try:
            return original(*arguments, **options)
        finally:
            if state[full]:
                guard.attempt("backward", after)

    def apart(root: Any) -> None:
        """A loss that stands out, or that cannot be read in passing."""
        guard.attempt("backward", read_apart, root, sys._getframe(3))

    def any_arguments(*arguments: Any, **options: Any) -> Any:
        if compiling():
            return original(*arguments, **options)
        number = state[backwards] = state[backwards] + 1
        return looked_at(number, arguments, options)

    def known_arguments(
        tensors: Any,
        grad_tensors: Any = None,
        retain_graph: Any = None,
        create_graph: Any = False,
        grad_variables: Any = None,
        inputs: Any = None,
    ) -> Any:
        """The same where torch's own parameters are these, as they have always been: nothing is packed."""
        if compiling():
            return original(tensors, grad_tensors, retain_graph, create_graph, grad_variables, inputs)
        number = state[backwards] = state[backwards] + 1
        if number & state[skipped] and not state[close]:  # steps so short that reading each loss would be felt
            return original(tensors, grad_tensors, retain_graph, create_graph, grad_variables, inputs)
        return looked_at(number, (tensors, grad_tensors, retain_graph, create_graph, grad_variables, inputs), {})

    def at_rest(
        tensors: Any,
        grad_tensors: Any = None,
        retain_graph: Any = None,
        create_graph: Any = False,
        grad_variables: Any = None,
        inputs: Any = None,
    ) -> Any:
        """While the other hooks rest: a loss that stands out, or cannot be read here, wakes them."""
        nonlocal passed
        passed += 1
        if passed & passes_over:
            return original(tensors, grad_tensors, retain_graph, create_graph, grad_variables, inputs)
        value = math.nan
        if type(tensors) is tensor_type and scaled[1] is None and not (functions() or dispatches() or compiling()):
            try:
                value = tensors.item()
            except RuntimeError:  # of several elements
                pass
        if type(value) is float and reader.low <= value <= reader.high:
            reader.values.append(value)
            if len(reader.values) > GATHERED:
                guard.attempt("backward", reader.hand_over)
            return original(tensors, grad_tensors, retain_graph, create_graph, grad_variables, inputs)
        guard.attempt("backward", resting.end)
        number = state[backwards] = state[backwards] + 1
        return looked_at(number, (tensors, grad_tensors, retain_graph, create_graph, grad_variables, inputs), {})

    known = _same_parameters(original, known_arguments)
    backward = wraps(original)(known_arguments if known else any_arguments)
    reading = wraps(original)(at_rest) if known else backward
    ours = (backward, reading)

    def remove() -> None:
        resting.leave(rest)
        if module.backward in ours:  # not if somebody has wrapped it since
            module.backward = original

    def rest(loading: object) -> None:
        nonlocal passes_over
        passes_over = resting.resting.passes_over
        if module.backward is original or module.backward in ours:
            resting_now = reading if resting.resting.reads_losses else original
            module.backward = backward if loading is None else resting_now

    for each in ours:
        hiding.stand_aside(each)  # type: ignore[arg-type]  # `wraps` hides that it is a function
    module.backward = backward
    guard.on("backward", remove)
    resting.follow(rest)
    _wrap_grad(module, torch)


def _same_parameters(one: Any, other: Any) -> bool:
    codes = [each.__code__ for each in (one, other) if hasattr(each, "__code__")]
    return len(codes) == 2 and len({code.co_varnames[: code.co_argcount] for code in codes}) == 1


def before(given: Any, frame: FrameType) -> None:
    """Before a backward pass that is looked at: in a sampled step, or to see whether updates are made by hand."""
    flight.words[at.W_BACKWARDS] = flight.state[flight.BACKWARDS]  # they may go on without a step
    with hiding.Hidden():
        root = _root(given)
        if flight.full() or len(_reader.values) > GATHERED // 2:
            _reader.hand_over()
        if stepping.by_hand.looks():
            _count_by_hand(stepping.leaves_of(root) if root is not None else [], adds=True)
        frame = _caller(frame)
        if flight.full():
            dispatch.module("loading").note_ahead()
            if root is not None and root.numel() == 1:
                _reader.read(root, frame)
            dispatch.emit("before_backward", root, frame)
            _reader.ask()
        elif flight.state[flight.CLOSE] and root is not None and root.is_cpu and root.numel() == 1:
            _reader.note(root, frame)  # where all are looked at, it was not read in passing
        if flight.state[flight.FULL]:
            flight.enter(at.BACKWARD)


def after() -> None:
    """After a backward pass in a sampled step: what it left is clipped next, or cleared by the script's update."""
    flight.enter(at.BETWEEN)
    with hiding.Hidden():
        if stepping.by_hand.active and stepping.by_hand.leftovers is not None:
            stepping.by_hand.leftovers.after()
        if flight.state[flight.PROBED]:
            dispatch.emit("after_backward")


def read_apart(root: Any, frame: FrameType) -> None:
    with hiding.Hidden():
        if type(root) is sys.modules["torch"].Tensor and root.numel() == 1:
            _reader.read(root, _caller(frame))


def _wrap_grad(module: Any, torch: Any) -> None:
    """`torch.autograd.grad`: where no optimizer steps, updates may be made of what it gives."""
    original, state = module.grad, flight.state

    @wraps(original)
    def grad(outputs: Any, inputs: Any, *arguments: Any, **options: Any) -> Any:
        traced = torch.compiler.is_dynamo_compiling() or torch._C._len_torch_dispatch_stack()
        if state[flight.FULL] and not traced:
            guard.attempt("autograd.grad", derivative, outputs, arguments, options, sys._getframe(1))
        if traced or (state[flight.STEPS] and not stepping.by_hand.active):
            return original(outputs, inputs, *arguments, **options)
        guard.attempt("autograd.grad", before_grad, outputs, inputs, sys._getframe(1))
        gradients = original(outputs, inputs, *arguments, **options)
        if state[flight.PROBED]:
            guard.attempt("autograd.grad", after_grad, inputs, gradients)
        return gradients

    def remove() -> None:
        if module.grad is grad:
            module.grad = original

    hiding.stand_aside(grad)  # type: ignore[arg-type]  # as above
    module.grad = grad
    guard.on("autograd.grad", remove)


def derivative(given: Any, arguments: tuple[Any, ...], options: dict[str, Any], frame: FrameType) -> None:
    """One without a graph of its own, in a sampled step: it teaches the weights nothing."""
    if options.get("create_graph", arguments[2] if len(arguments) > 2 else False) is False:
        with hiding.Hidden():
            for root in _tensors(given)[:1]:
                dispatch.emit("derivative_taken", root, frame)


MAX_INPUTS = 64  # tensors that one call of `grad` may be about, as far as they are looked at


def before_grad(given: Any, inputs: Any, frame: FrameType) -> None:
    """Its loss is read as that of a backward pass is."""
    with hiding.Hidden():
        leaves = [each for each in _tensors(inputs) if each.is_leaf]
        _count_by_hand(leaves, adds=False)
        root = given if type(given) is sys.modules["torch"].Tensor else None  # the compiler gives a list
        if root is None or root.numel() != 1:
            return
        if flight.full():
            _reader.read(root, frame)
            dispatch.emit("gradients_asked", leaves)
            dispatch.emit("before_backward", root, frame)
            _reader.ask()
        elif root.is_cpu:
            _reader.note(root, frame)


def after_grad(inputs: Any, gradients: Any) -> None:
    """What it gave is where else `.grad` would be looked at."""
    with hiding.Hidden():
        parameters, given = _tensors(inputs), gradients if type(gradients) is tuple else ()
        if parameters and len(parameters) == len(given) and all(each.is_leaf for each in parameters):
            dispatch.emit("gradients_given", parameters, given)


def _tensors(inputs: Any) -> list[Any]:
    """Plain tensors and parameters among them."""
    torch = sys.modules["torch"]
    given = inputs[:MAX_INPUTS] if type(inputs) in (list, tuple) else (inputs,)
    return [each for each in given if type(each) in (torch.Tensor, torch.nn.Parameter)]


def _count_by_hand(leaves: list[Any], *, adds: bool) -> None:
    """Before a backward pass where no optimizer is at work: a step, if the parameters have changed since the last."""
    if leaves and stepping.by_hand.before_backward(leaves, adds=adds):
        if flight.full():
            dispatch.emit("after_step", None, stepping.by_hand.made)
        stepping.count()
        if flight.steps() >= flight.state[flight.DUE]:
            stepping.by_hand.turn()
    if leaves and flight.full() and stepping.by_hand.made:
        dispatch.emit("before_step", None, False)
    if flight.words[at.W_REQUEST]:  # also where no step is ever made
        stepping.answer()


def _root(tensors: Any) -> Any:
    """The loss: a plain tensor, or the only one in a list."""
    if type(tensors) in (list, tuple) and len(tensors) == 1:
        tensors = tensors[0]
    return tensors if type(tensors) is sys.modules["torch"].Tensor else None


def _caller(frame: FrameType) -> FrameType:
    """Who called backward; above `Tensor.backward`."""
    above = frame.f_back
    return above if frame.f_code.co_name == "backward" and above is not None else frame
