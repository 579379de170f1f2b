"""One training step seen from its modules, now and then: which were called, in which mode, and with a graph or without.

torch's global module hooks are in place for that step only. Where a parameter that an optimizer has is never reached
by a loss, a few steps are looked at more closely (with the interpreter's profiling seam, where nobody uses it): between
which two modules the graph ends, and at which line. Never where a compiler is in use.
"""

from __future__ import annotations

import sys
import weakref
from functools import wraps

from ... import flight, governor, gpu, guard, objects
from ..data import batch_statistics
from . import graph_cut, layers, ownership, script_lines, updates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CALLS = 3000
EACH = 8e-6
"""Seconds that noting one call takes: too short to be measured each time."""
DEEP = 3
"""Closer looks in all that found something, of so many"""
TRIES = 12
RAW = 3
"""Observed steps in which it is looked at what layers are given that are given data as it came."""
ENOUGH = 3
"""Sampled steps without a gradient, before a closer look is taken."""
now: Observation | None = None
modes: dict[str, list[list[Any]]] = {}
"""By root module: [step, its `training`, regularizing modules in eval mode, of so many, batch norms never updated]."""
_tracked: dict[int, float] = {}
"""Batches that a batch-norm on a GPU has seen, by its module."""
observed = 0
leaf_losses = 0
cut: dict[str, Any] | None = None
_due = 2
_found = _tries = 0
_handles: list[Any] = []
_compiled = False
"""A compiled module was made."""


class Call:
    """One call of one module."""

    __slots__ = (
        "came",
        "given",
        "gives",
        "grad",
        "input_graph",
        "left",
        "module",
        "outermost",
        "output_graph",
        "raw",
        "stack",
        "training",
    )

    def __init__(self, module: Any, outermost: Any, came: int, grad: bool) -> None:
        self.module = weakref.ref(module)
        self.outermost = weakref.ref(outermost)
        self.came, self.left = came, -1
        self.grad = grad
        self.training = bool(module.__dict__.get("training", True))
        self.input_graph = self.output_graph = False
        self.given: list[graph_cut.Print] = []
        self.gives: list[graph_cut.Print] = []
        self.stack: list[tuple[Any, int]] = []
        self.raw: dict[str, Any] | None = None
        """Of a layer that is given data as it came: how large and how uneven that is."""


class Observation:
    """What is seen until the next optimizer step."""

    def __init__(self, deep: bool) -> None:
        self.calls: list[Call] = []
        self.open: list[Call] = []
        self.leaves: set[int] = set()
        self.backwards = 0
        self.whole = True
        self.missed = False
        """A backward pass was not looked at."""
        self.raw = 0
        """Layers of which it was looked at what they are given."""
        self.graphless = False
        """A layer gave something without a graph: what comes without one after it may be made of that."""
        self.ended = -1
        """Where in the order of events the first backward pass came."""
        self.events = graph_cut.Events() if deep else None
        self.deep = deep
        self.step = flight.steps()
        self.order = 0

    def next(self) -> int:
        self.order += 1
        if self.events is not None:
            self.events.order = self.order
        return self.order


def after_step(names: Any, optimizer: Any) -> None:
    """After an optimizer step: an observation ends, or one begins where it is due."""
    if now is not None:
        _finish(names, optimizer)
    if flight.steps() < _due or not flight.full() or not governor.allows():
        return
    begin()


def full_changed(full: bool) -> None:
    if full and now is None and flight.steps() >= _due and governor.allows():
        try:
            begin()
        except Exception as fault:
            guard.off("forward", fault)


def begin() -> None:
    global now, _tries
    if "forward" in guard.OFF or _compiler_in_use() or observed >= 200:
        return
    deep = _found < DEEP and _tries < TRIES and bool(suspects())
    _tries += deep
    torch = sys.modules["torch"]
    now = Observation(deep)
    module = torch.nn.modules.module
    _handles.append(module.register_module_forward_pre_hook(_before))
    _handles.append(module.register_module_forward_hook(_after))
    if now.events is not None and not torch._C._autograd._profiler_enabled():
        now.events.start()


def install_compiler(module: Any) -> None:
    """`module` is torch._dynamo.eval_frame: it warns of global hooks where a model is compiled, so ours go first."""
    kind = module.OptimizedModule
    original = kind.__init__

    @wraps(original)
    def __init__(self: Any, *arguments: Any, **options: Any) -> None:
        global _compiled
        _compiled = True
        try:
            end()
        except Exception as fault:
            guard.off("forward", fault)
        original(self, *arguments, **options)

    kind.__init__ = __init__
    guard.on("compiler", lambda: setattr(kind, "__init__", original))


def end() -> None:
    """Take the hooks out."""
    global now
    observation, now = now, None
    while _handles:
        _handles.pop().remove()
    if observation is not None and observation.events is not None:
        observation.events.stop()


def suspects() -> set[int]:
    """Parameters that an optimizer has, that want a gradient, never had one and were in no graph."""
    held = ownership.holders()
    found = set()
    for key, each in updates.parameters.items():
        parameter = each.ref()
        if parameter is None or each.in_graph or key not in held or not parameter.requires_grad:
            continue
        if each.seen >= ENOUGH and each.none == each.seen and parameter.grad is None:
            found.add(key)
    return found


def at_backward(leaves: list[Any], whole: bool) -> None:
    """Before a backward pass in an observed step."""
    if now is None:
        return
    now.backwards += 1
    now.whole = now.whole and whole
    now.leaves.update(id(leaf) for leaf in leaves)
    if now.ended < 0:
        now.ended = now.next()


def nothing_reached() -> None:
    """Backward was called on a loss that has no graph at all, and was only told to want a gradient."""
    global leaf_losses
    leaf_losses += 1
    at_backward([], whole=True)


def missed() -> None:
    """A backward pass in an observed step was not looked at."""
    if now is not None:
        now.whole, now.missed = False, True


def _before(module: Any, arguments: Any) -> None:
    try:
        observation = now
        if observation is None or _tracing():
            return
        if len(observation.calls) >= CALLS:
            observation.whole = False
            end()
            return
        torch = sys.modules["torch"]
        outermost = observation.open[0].module() if observation.open else None
        call = Call(module, outermost or module, observation.next(), torch.is_grad_enabled())
        tensors = graph_cut.tensors(arguments)
        call.input_graph = any(tensor.requires_grad for tensor in tensors)
        if observation.deep and not call.input_graph:
            with governor.Reading():
                call.given = [graph_cut.Print(tensor) for tensor in graph_cut.tensors(arguments, whole=True)[:4]]
                call.stack = graph_cut.stack(sys._getframe(1))
        if observed < RAW and tensors and not call.input_graph and layers.own(module):
            _note_raw(observation, call, tensors[0])
        observation.calls.append(call)
        observation.open.append(call)
    except Exception as fault:
        guard.off("forward", fault)


def _note_raw(observation: Observation, call: Call, tensor: Any) -> None:
    """A layer is given something without a graph: what that is like, where no layer made it."""
    came = batch_statistics.came(tensor)
    if observation.raw >= batch_statistics.GIVEN or (observation.graphless and not came):
        return
    if governor.allows():
        observation.raw += 1
        with governor.Reading():
            call.raw = batch_statistics.scale_of(type(call.module()).__name__, tensor)


def _after(module: Any, arguments: Any, output: Any) -> None:
    try:
        observation = now
        if observation is None or _tracing():
            return
        while observation.open:
            call = observation.open.pop()
            if call.module() is module:
                break
        else:
            return
        call.left = observation.next()
        tensors = graph_cut.tensors(output)
        call.output_graph = any(tensor.requires_grad for tensor in tensors)
        if not call.output_graph and layers.own(module):
            observation.graphless = True
        if observation.deep:
            with governor.Reading():
                call.gives = [graph_cut.Print(tensor) for tensor in tensors[:4]]
    except Exception as fault:
        guard.off("forward", fault)


def _finish(names: Any, optimizer: Any) -> None:
    """Take in what was seen, where it was a whole training step."""
    global observed, cut, _due, _found
    observation = now
    end()
    if observation is None:
        return
    governor.spent += EACH * len(observation.calls)
    if observation.raw and (observation.backwards or observation.missed):
        _note_given(observation, names)
    if not observation.whole or not observation.backwards or not observation.calls:
        _due = flight.steps() + 3
        return
    observed += 1
    _due = max(flight.steps() + 3, int(flight.steps() * 1.5))
    with governor.Reading():
        called = _module_names(names)
        _note_modes(observation, called)
        _note_called(observation)
        if observation.deep:
            stepping = {id(p) for group in optimizer.param_groups for p in group["params"]}
            lost = (suspects() - observation.leaves) & stepping
            if not lost:  # the step of another optimizer: the next one may be theirs
                _due = flight.steps()
            found = graph_cut.find(observation, lost, called) if lost else None
            _found += found is not None
            if found is not None and (cut is None or found["proven"] >= cut["proven"]):
                cut = {**found, "step": observation.step, "times": 1 + (cut["times"] if cut else 0)}


def _note_given(observation: Observation, names: Any) -> None:
    with governor.Reading():
        called = _module_names(names)
        for call in observation.calls:
            if call.raw is not None and call.module() is not None:
                batch_statistics.layer_is_given(called.get(id(call.module())) or call.raw["kind"], call.raw)


def _note_called(observation: Observation) -> None:
    seen: dict[int, bool] = {}
    for call in observation.calls:
        for parameter in layers.own(call.module()) if call.module() is not None else ():
            seen[id(parameter)] = seen.get(id(parameter), False) or call.grad
    for key, graph in seen.items():
        state = ownership.states.get(key)
        if state is not None:
            state.called += 1
            state.idle += not graph


def _note_modes(observation: Observation, called: dict[int, str]) -> None:
    """For each outermost module that is trained: how its dropouts and batch norms are set."""
    torch = sys.modules["torch"]
    drops, norms = torch.nn.modules.dropout._DropoutNd, torch.nn.modules.batchnorm._NormBase
    roots: dict[int, tuple[Any, list[Any]]] = {}
    last: dict[int, Call] = {}
    for call in observation.calls:
        if call.grad and (observation.ended < 0 or call.came < observation.ended):
            last[id(call.module())] = call
    for call in last.values():
        module, outermost = call.module(), call.outermost()
        if module is None or outermost is None:
            continue
        kind = type(module)
        if (issubclass(kind, drops) and module.__dict__.get("p", 0) > 0) or (
            issubclass(kind, norms) and module.__dict__.get("track_running_stats")
        ):
            roots.setdefault(id(outermost), (outermost, []))[1].append(call)
    for outermost, calls in roots.values():
        own = [p for part in layers.tree(outermost) for p in layers.own(part)]
        wanted = [p for p in own if p.requires_grad]
        if not any(id(p) in observation.leaves for p in wanted):
            continue
        name = called.get(id(outermost)) or type(outermost).__name__
        if name not in modes and len(modes) >= 8:
            continue
        never = sum(1 for call in calls if _never_updated(call.module()))
        frozen = len(own) - len(wanted)
        outer = last.get(id(outermost))
        training = outer.training if outer is not None else bool(outermost.__dict__.get("training", True))
        idle = [call for call in calls if not call.training]
        kinds = sorted({type(call.module()).__name__ for call in idle})
        history = modes.setdefault(name, [])
        history.append(
            [observation.step, training, len(idle), len(calls), never, kinds, frozen, type(outermost).__name__]
        )
        if len(history) > 24:
            del history[8:-8:2]


def _never_updated(module: Any) -> bool:
    own = module.__dict__.get("_buffers") or {}
    count = own.get("num_batches_tracked")
    if count is None or gpu.near(count):
        return count is not None and int(count) == 0
    if gpu.away(count):
        gpu.read([count], lambda values: _tracked.__setitem__(id(module), values[0]))
    return _tracked.get(id(module)) == 0


def _module_names(names: Any) -> dict[int, str]:
    found: dict[int, str] = {}

    def walk(name: str, module: Any) -> None:
        if id(module) in found or len(found) > 4000:
            return
        found[id(module)] = name
        own = objects.instance_dict(module) or {}
        for part, inner in list((own.get("_modules") or {}).items()):
            if inner is not None:
                walk(f"{name}.{part}", inner)

    for name, module in names.roots:
        walk(name, module)
    return found


def _tracing() -> bool:
    torch = sys.modules["torch"]
    return torch._C._get_tracing_state() is not None or torch.compiler.is_dynamo_compiling()


def _compiler_in_use() -> bool:
    """Something was compiled in this process: hooks would have it compiled again."""
    used = sys.modules.get("torch._dynamo.utils")
    counters = getattr(used, "counters", None)
    return _compiled or (bool(counters) and bool(counters.get("frames")))  # type: ignore[union-attr]  # it is a dict


def plain() -> dict[str, Any]:
    idle = any(history and not history[-1][1] for history in modes.values())
    return {
        "observed": observed,
        "modes": modes,
        "cut": cut,
        "leaf_losses": leaf_losses,
        "eval_site": script_lines.written_at(r"\.(eval\(\)|train\(False\))") if idle else None,
    }


def install() -> None:
    flight.when_full_changes["forward"] = full_changed
    guard.on("forward", remove)


def remove() -> None:
    flight.when_full_changes.pop("forward", None)
    end()
