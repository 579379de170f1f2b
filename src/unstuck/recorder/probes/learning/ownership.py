"""Who has which parameter: the optimizers as they were built, and for each parameter how it began and whether it moved.

A few elements of each parameter are kept from the first backward pass on. Nothing of it is written, nothing is called
that belongs to the training.
"""

from __future__ import annotations

import sys
import weakref
from functools import wraps

from ... import gpu, guard
from . import first_weights, layers, losses, script_lines, updates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

BUILT = 16
STATES = 1000
built: list[Built] = []
by_identity: dict[int, Built] = {}
states: dict[int, first_weights.State] = {}
_seen = -1


class Checks:
    """Looks at the gradients between two steps of an optimizer whose answers come later, from a GPU."""

    __slots__ = ("awaited", "clean", "closed", "of")

    def __init__(self, of: Built) -> None:
        self.of = of
        self.awaited, self.clean, self.closed = 0, False, False

    def arrived(self, flags: list[float]) -> None:
        self.awaited -= 1
        self.clean = self.clean or not any(flags)
        self.settle()

    def settle(self) -> None:
        if self.closed and not self.awaited:
            self.of.tried += 1
            self.of.stale += not self.clean


class Built:
    """One optimizer, from its constructor on."""

    __slots__ = (
        "_held",
        "checks",
        "clean",
        "clears",
        "entry",
        "kind",
        "pending",
        "ref",
        "site",
        "stale",
        "stepped",
        "tried",
    )

    def __init__(self, optimizer: Any, site: list[str | int] | None) -> None:
        self.ref = weakref.ref(optimizer)
        self.kind = type(optimizer).__name__
        self.site = site
        self.clears = self.stale = self.tried = 0
        self.stepped = self.pending = self.clean = False
        self.checks: Checks | None = None
        self.entry: updates.Optimizer | None = None
        """Made when it first steps."""
        self._held: list[weakref.ref[Any]] = []

    def parameters(self) -> list[Any]:
        """What it has now; when it is gone, what it had."""
        optimizer = self.ref()
        if optimizer is None:
            return [parameter for ref in self._held if (parameter := ref()) is not None]
        found = [p for group in optimizer.param_groups for p in group["params"] if gpu.plain(p)]
        if len(found) != len(self._held):
            self._held = [weakref.ref(parameter) for parameter in found]
        return found


def install(module: Any) -> None:
    """`module` is torch.optim.optimizer."""
    kind = module.Optimizer
    original = kind.__init__

    @wraps(original)
    def __init__(self: Any, *arguments: Any, **options: Any) -> None:
        original(self, *arguments, **options)
        try:
            note_built(self, sys._getframe(1))
        except Exception as fault:
            guard.off("optimizers built", fault)

    kind.__init__ = __init__

    def remove() -> None:
        if kind.__init__ is __init__:
            kind.__init__ = original

    guard.on("optimizers built", remove)


def note_built(optimizer: Any, frame: FrameType | None) -> None:
    if len(built) >= BUILT:
        return
    codes = [getattr(kind.__dict__.get("__init__"), "__code__", None) for kind in type(optimizer).__mro__]
    while frame is not None and frame.f_code in codes:  # constructors of its own class
        frame = frame.f_back
    known = Built(optimizer, losses._site(frame) if frame is not None else None)
    known.parameters()
    built.append(known)
    if known.site is not None:
        script_lines.files_of_optimizers.append(str(known.site[0]))
    by_identity[id(optimizer)] = known


def entry(optimizer: Any) -> Built | None:
    found = by_identity.get(id(optimizer))
    return found if found is not None and found.ref() is optimizer else None


def stepped(optimizer: Any) -> None:
    """After each of its steps: were the gradients of the step before there at every backward pass between the two?"""
    known = entry(optimizer)
    if known is None:
        return
    if known.entry is None:
        known.entry = updates.known(optimizer)
    if known.clean:
        known.tried += 1
    elif known.checks is not None:
        known.checks.closed = True
        known.checks.settle()
    elif known.pending:
        known.tried += 1
        known.stale += 1
    known.stepped, known.pending, known.clean, known.checks = True, False, False, None


def missed() -> None:
    """A backward pass was not looked at: between these two steps nothing is known."""
    for each in built:
        each.stepped = each.pending = False
        each.checks = None


def at_backward() -> None:
    """Before a backward pass that is looked at."""
    _begin()
    torch = sys.modules["torch"]
    for each in built:
        if not each.stepped or each.clean:
            continue
        grads = [p.grad for p in each.parameters()[:24] if p.requires_grad]
        held = [grad for grad in grads if grad is not None and not grad.is_sparse and gpu.plain(grad)][:6]
        with torch.no_grad():
            if held and all(gpu.away(grad) for grad in held):
                each.checks = each.checks or Checks(each)
                each.checks.awaited += gpu.read([grad.any() for grad in held], each.checks.arrived)
            elif any(bool(grad.any()) for grad in held if gpu.near(grad)):
                each.pending = True
            else:
                each.clean = True


def _begin() -> None:
    """Note how parameters begin that were not seen before."""
    global _seen
    count = len(updates.parameters) + len(built)
    if count == _seen or len(states) >= STATES:
        return
    _seen = count
    fresh = []
    for parameter in everything():
        known = states.get(id(parameter))
        if (known is None or known.ref() is not parameter) and len(states) < STATES:
            states[id(parameter)] = first_weights.State(parameter)
            fresh.append(parameter)
    first_weights.bring([states[id(parameter)] for parameter in fresh if gpu.away(parameter)])


def everything() -> list[Any]:
    """Parameters that an optimizer has or a graph ended in."""
    known = {id(p): p for each in built for p in each.parameters()}
    for each in updates.parameters.values():
        parameter = each.ref()
        if parameter is not None:
            known.setdefault(id(parameter), parameter)
    return list(known.values())


def holders() -> dict[int, int]:
    """Number of the optimizer, as built, that has a parameter now."""
    held: dict[int, int] = {}
    for number, each in enumerate(built):
        for parameter in each.parameters():
            held.setdefault(id(parameter), number)
    return held


def of_parameter(key: int, held: dict[int, int]) -> dict[str, object]:
    """What is told of one parameter beside its updates."""
    state = states.get(key)
    parameter = state.ref() if state is not None else None
    if state is None or parameter is None:
        return {}
    moved = state.moved()
    return {
        "fresh": state.fresh and not (moved and int(parameter._version) > state.version + first_weights.UNTOUCHED),
        "moved": moved,
        "alike": ("zero" if state.zero else "same") if state.alike else "",
        "still_alike": state.still_alike(),
        "called": state.called,
        "idle": state.idle,
        "trainable": bool(parameter.requires_grad),
        "is_parameter": type(parameter).__name__ == "Parameter",
        "held": held.get(id(parameter)),
    }


def plain(names: Any) -> dict[str, Any]:
    held = holders()
    strays = [
        {"shape": list(p.shape), "numel": int(p.numel())}
        for number, each in enumerate(built)
        for p in each.parameters()
        if names.names and id(p) not in names.names and _stray(p)
    ]
    alike = any(state.alike for state in states.values())
    return {
        "built": _built(),
        "kept_in": layers.kept_in(names, held),
        "strays": strays[:16],
        "first_weights": script_lines.given_first_weights() if alike else None,
    }


def _stray(parameter: Any) -> bool:
    """It was in no graph: only its optimizer still has it."""
    known = updates.parameters.get(id(parameter))
    return bool(parameter.requires_grad) and known is not None and not known.in_graph and known.seen >= 3


def _built() -> list[dict[str, object]]:
    told: list[dict[str, object]] = []
    for number, each in enumerate(built):
        parameters = each.parameters()
        reached = [updates.parameters.get(id(p)) for p in parameters]
        told.append(
            {
                "number": number,
                "kind": each.kind,
                "site": each.site,
                "parameters": len(parameters),
                "trainable": sum(1 for p in parameters if p.requires_grad),
                "in_graph": sum(1 for one in reached if one is not None and one.in_graph),
                "moved": sum(1 for p in parameters if id(p) in states and states[id(p)].moved()),
            }
        )
    count(told)
    return told


def count(told: list[dict[str, object]]) -> None:
    """What is counted at every step, as it stands now; also of optimizers that are gone."""
    for about, each in zip(told, built, strict=False):
        about["steps"] = each.entry.steps if each.entry is not None else 0
        about["clears"], about["stale"], about["checked"] = each.clears, each.stale, each.tried
