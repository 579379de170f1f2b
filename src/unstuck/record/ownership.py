"""Who has which parameter: the optimizers as they were built, and for each parameter how it began and whether it moved.

A few elements of each parameter are kept from the first backward pass on. Nothing of it is written, nothing is called
that belongs to the training.
"""

from __future__ import annotations

import sys
import weakref
from functools import wraps

from . import losses, probes, reach, sites, updates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

BUILT = 16
STATES = 1000
ELEMENTS = 1_000_000
"""A larger parameter is only sampled."""
SAMPLE = 12
UNTOUCHED = 4
"""In-place writes that making a layer and giving it its first weights can take; a training makes many more."""
built: list[Built] = []
by_identity: dict[int, Built] = {}
states: dict[int, State] = {}
_seen = -1
_places: dict[object, list[str | int]] = {}
"""Lines found; at the end of the process the script's name is gone."""


class Built:
    """One optimizer, from its constructor on."""

    __slots__ = ("_held", "clean", "clears", "entry", "kind", "pending", "ref", "site", "stale", "stepped", "tried")

    def __init__(self, optimizer: Any, site: list[str | int] | None) -> None:
        self.ref = weakref.ref(optimizer)
        self.kind = type(optimizer).__name__
        self.site = site
        self.clears = self.stale = self.tried = 0
        self.stepped = self.pending = self.clean = False
        self.entry: updates.Optimizer | None = None
        """Made when it first steps."""
        self._held: list[weakref.ref[Any]] = []

    def parameters(self) -> list[Any]:
        """What it has now; when it is gone, what it had."""
        optimizer = self.ref()
        if optimizer is None:
            return [parameter for ref in self._held if (parameter := ref()) is not None]
        found = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        if len(found) != len(self._held):
            self._held = [weakref.ref(parameter) for parameter in found]
        return found


class State:
    """How one parameter began."""

    __slots__ = ("alike", "called", "first", "fresh", "idle", "ref", "version", "zero")

    def __init__(self, parameter: Any) -> None:
        self.ref = weakref.ref(parameter)
        self.version = int(parameter._version)
        self.first = _sample(parameter)
        self.alike = _alike(parameter)
        self.zero = self.first is not None and not any(self.first) and not bool(parameter.detach().any())
        self.fresh = _fresh(parameter)
        self.called = self.idle = 0
        """Observed steps in which its module was called; of these, without a graph being recorded."""

    def moved(self) -> bool:
        parameter = self.ref()
        if parameter is None:
            return True
        return int(parameter._version) != self.version or _sample(parameter) != self.first


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
            probes.off("optimizers built", fault)

    kind.__init__ = __init__

    def remove() -> None:
        if kind.__init__ is __init__:
            kind.__init__ = original

    probes.on("optimizers built", remove)


def note_built(optimizer: Any, frame: FrameType | None) -> None:
    if len(built) >= BUILT:
        return
    codes = [getattr(kind.__dict__.get("__init__"), "__code__", None) for kind in type(optimizer).__mro__]
    while frame is not None and frame.f_code in codes:  # constructors of its own class
        frame = frame.f_back
    known = Built(optimizer, losses._site(frame) if frame is not None else None)
    known.parameters()
    built.append(known)
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
    elif known.pending:
        known.tried += 1
        known.stale += 1
    known.stepped, known.pending, known.clean = True, False, False


def missed() -> None:
    """A backward pass was not looked at: between these two steps nothing is known."""
    for each in built:
        each.stepped = each.pending = False


def at_backward() -> None:
    """Before a backward pass that is looked at."""
    _begin()
    torch = sys.modules["torch"]
    for each in built:
        if not each.stepped or each.clean:
            continue
        grads = [p.grad for p in each.parameters()[:24] if p.requires_grad and p.device.type == "cpu"]
        held = [grad for grad in grads if grad is not None and not grad.is_sparse][:6]
        with torch.no_grad():
            if any(bool(grad.any()) for grad in held):
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
    for parameter in everything():
        known = states.get(id(parameter))
        if (known is None or known.ref() is not parameter) and len(states) < STATES:
            states[id(parameter)] = State(parameter)


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
        "fresh": state.fresh and not (moved and int(parameter._version) > state.version + UNTOUCHED),
        "moved": moved,
        "alike": ("zero" if state.zero else "same") if state.alike else "",
        "still_alike": state.alike and _alike(parameter, 0.01),
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
        "kept_in": _kept_in(names, held),
        "strays": strays[:16],
        "first_weights": given_first_weights() if alike else None,
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


# --- lost layers ---------------------------------------------------------------------------------------------


def _kept_in(names: Any, held: dict[int, int]) -> list[dict[str, object]]:
    """Modules with parameters that no optimizer has, and that a plain list or dict of another module keeps."""
    unowned = {
        key for key, each in updates.parameters.items() if each.in_graph and each.owner is None and key not in held
    }
    if not unowned:
        return []
    found: list[dict[str, object]] = []
    trees = [(name, module, _tree(module)) for name, module in names.roots]
    for name, root, parts in trees:
        if not any(id(p) in unowned for part in parts for p in _own(part)):
            continue
        for other_name, other, others in trees:
            if other is root:
                continue
            for part in others:
                kept = _keeps(part, root)
                if kept is not None and len(found) < 64:
                    attribute, container = kept
                    site = _assigned(type(part), attribute)
                    found.append(
                        {
                            "module": name,
                            "holder": other_name,
                            "kind": type(part).__name__,
                            "attribute": attribute,
                            "container": container,
                            "site": site,
                        }
                    )
    return found


def _tree(module: Any) -> list[Any]:
    found, seen = [module], {id(module)}
    for each in found:  # it grows
        own = reach.instance_dict(each) or {}
        for part in list((own.get("_modules") or {}).values()):
            if part is not None and id(part) not in seen and len(found) < 4000:
                seen.add(id(part))
                found.append(part)
    return found


def _own(module: Any) -> list[Any]:
    own = reach.instance_dict(module) or {}
    return [parameter for parameter in list((own.get("_parameters") or {}).values()) if parameter is not None]


def _keeps(module: Any, wanted: Any) -> tuple[str, str] | None:
    """Attribute of `module`, a list, tuple or dict in which `wanted` is; also one level further in."""
    for name, value in list((reach.instance_dict(module) or {}).items()):
        if type(value) not in (list, tuple, dict) or type(name) is not str:
            continue
        for inner in _values(value):
            if inner is wanted or any(deeper is wanted for deeper in _values(inner)):
                return name, type(value).__name__
    return None


def _values(value: Any) -> list[Any]:
    if type(value) in (list, tuple):
        return list(value)[:256]
    return list(value.values())[:256] if type(value) is dict else []


def layer_site(path: str, names: Any) -> list[str | int] | None:
    """Where the class that has a layer makes it: the nearest class of the user's on its path."""
    for root, module in names.roots:
        if not path.startswith(f"{root}."):
            continue
        found: list[str | int] | None = None
        for part in path[len(root) + 1 :].split("."):
            found = _assigned(type(module), part) or found
            module = ((reach.instance_dict(module) or {}).get("_modules") or {}).get(part)
            if module is None:
                break
        if found is not None:
            return found
    return None


def _assigned(kind: type, attribute: str) -> list[str | int] | None:
    """The line of the class, or of one of its bases, that gives `self.<attribute>` its value."""
    key = (kind, attribute)
    if _places.get(key) is not None:
        return _places[key]
    import linecache
    import re

    pattern = re.compile(rf"\bself\.{re.escape(attribute)}\s*(:[^=]+)?=[^=]")
    for each in kind.__mro__:
        file = reach.file_of(each)
        if not file:
            continue
        inside = False
        for number, line in enumerate(linecache.getlines(file), 1):
            if re.match(rf"\s*class\s+{each.__name__}\b", line):
                inside = True
            elif inside and pattern.search(line):
                _places[key] = [sites.absolute(file), number, f"{each.__name__}.__init__"]
                return _places[key]
    return None


# --- one parameter -------------------------------------------------------------------------------------------


def _sample(parameter: Any) -> tuple[float, ...] | None:
    """Some of its elements; None where reading them would wait for a device."""
    value = parameter.detach()
    if value.device.type != "cpu" or value.is_sparse or not value.is_floating_point():
        return None
    flat = value.reshape(-1) if value.is_contiguous() else value.flatten()
    return tuple(flat[:: max(1, flat.numel() // SAMPLE)][:SAMPLE].tolist())


def _alike(parameter: Any, within: float = 0.0) -> bool:
    """All rows of the matrix are the same; later `within` a share of its largest: kernels round rows apart."""
    value = parameter.detach()
    if value.device.type != "cpu" or value.dim() < 2 or value.shape[0] < 2 or value.is_sparse:
        return False
    if value.numel() < 4 or value.numel() > ELEMENTS:
        return False
    if not within and not bool((value[0] == value[1]).all()):
        return False
    return bool((value - value[:1]).abs().max() <= within * value.abs().max())


def _fresh(parameter: Any) -> bool:
    """It still has random first weights: few writes, and values spread evenly or by a bell curve, as no training
    leaves them."""
    value = parameter.detach()
    if value.device.type != "cpu" or value.dim() < 2 or not value.is_floating_point() or value.is_sparse:
        return False
    if value.numel() < 24 or value.numel() > ELEMENTS or int(parameter._version) > UNTOUCHED:
        return False
    value = value.float()
    spread = float(value.std())
    if spread <= 0 or abs(float(value.mean())) > 0.4 * spread:
        return False
    if float(value.abs().max()) < 1.95 * spread:
        return True  # a uniform distribution ends at 1.73
    if value.numel() < 512 and abs(spread - 1) > 0.15:
        return False  # too few to know a bell curve by its shape, but for the one of `randn`
    excess = float(((value - value.mean()) ** 4).mean()) / spread**4 - 3
    return bool(abs(excess) < 4 * (24 / value.numel()) ** 0.5)


def given_first_weights() -> list[str | int] | None:
    """A line of the user's that gives weights one value each: where matrices with rows alike most likely come from."""
    constant = r"(constant_|zeros_|ones_|fill_|(?<!\.)zero_|torch\.(zeros|ones|full)(_like)?)\("
    return written_at(rf"^(?!.*bias).*(weight.*{constant}|{constant}.*weight|Parameter\(.*{constant})") or written_at(
        rf"^(?!.*bias).*{constant}"
    )


def given_width() -> list[str | int] | None:
    """A line of the user's that draws weights at random."""
    drawn = r"(normal_|uniform_|torch\.randn?(_like)?)\("
    return written_at(rf"^(?!.*bias).*(weight.*{drawn}|{drawn}.*weight|Parameter\(.*{drawn})")


def written_at(pattern: str) -> list[str | int] | None:
    """The first line of the script, or of a file that builds an optimizer, that reads like this."""
    if _places.get(pattern) is not None:
        return _places[pattern]
    import linecache
    import re

    files = [getattr(sys.modules.get("__main__"), "__file__", None), *(each.site[0] for each in built if each.site)]
    for file in dict.fromkeys(files):
        if not isinstance(file, str) or not sites.is_user_file(file):
            continue
        for number, line in enumerate(linecache.getlines(file), 1):
            if re.search(pattern, line.partition("#")[0]):
                _places[pattern] = [sites.absolute(file), number, ""]
                return _places[pattern]
    return None
