"""What the training consists of and who has which parameter, as last looked at: at its end the model may be gone."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from ... import gpu, objects
from ...records import Site
from ...records import learning as records
from ...records.learning import KeptInList, Stray
from . import naming
from .activations import Activations, Layer
from .naming import Names
from .optimizers import Optimizers
from .parameters import Parameter, Parameters
from .script_lines import ScriptLines

MAX_PARAMETERS = 400
MAX_KEPT = 64
MAX_INSIDE = 256  # elements of a list that are looked at
CONTAINERS = objects.ids(list, tuple, dict)
WIDE = 3.0  # root mean square of a weight times the root of its inputs: 0.6 as torch begins, 1.4 by He's rule


class Inventory:
    def __init__(
        self, parameters: Parameters, optimizers: Optimizers, activations: Activations, names: Names,
        lines: ScriptLines, copies: gpu.Copies,
    ) -> None:  # fmt: skip
        self._all, self._optimizers, self._activations = parameters, optimizers, activations
        self._names, self._lines, self._copies = names, lines, copies
        self._chosen: dict[int, Parameter] = {}
        self._built = 0
        self.sites: dict[int, Site | None] = {}  # where a layer is made, by its number among the activations
        self.kept_in: list[KeptInList] = []
        self.strays: list[Stray] = []
        self.first_weights: Site | None = None
        self.passing = 0  # leaves of graphs that are gone

    @property
    def gone(self) -> bool:
        """Some of what was there when last looked at is no more."""
        return any(entry.ref() is None for entry in self._chosen.values())

    def look(self) -> None:
        known, holders = self._all.known, self._optimizers.holders()
        used = {key: entry for key, entry in known.items() if entry.in_graph or entry.owner is not None}
        living = [(key, entry) for key, entry in used.items() if entry.ref() is not None]
        self.passing = len(used) - len(living)
        largest = {key for key, _ in sorted(living, key=lambda item: -item[1].numel)[:MAX_PARAMETERS]}
        self._chosen = {key: entry for key, entry in living if key in largest}
        for entry in self._chosen.values():
            entry.look(holders, self._copies)
        for optimizer in self._optimizers.built:
            optimizer.look(self._all)
        self._built = len(self._optimizers.built)
        unowned = {key for key, entry in used.items() if entry.owner is None and key not in holders}
        self.kept_in = _kept_in_lists(self._names.roots, unowned, self._lines) if unowned else []
        self.strays = self._optimizers.strays(self._names)
        alike = any(entry.rows for entry in known.values())
        self.first_weights = self._lines.first_weights() if alike else None
        for number, layer in self._activations.layers.items():
            if layer.odd() and self.sites.get(number) is None:
                self.sites[number] = self._drawn_wide(layer) or self._lines.layer(self._names.makers(layer.name))

    def _drawn_wide(self, layer: Layer) -> Site | None:
        """Where the script draws weights itself, if those of this layer are far wider than torch makes them."""
        key = next((key for key, name in self._names.names.items() if name == f"{layer.name}.weight"), 0)
        weight = self._all.known.get(key)
        if weight is None or not weight.weights or len(weight.shape) < 2:
            return None
        width = weight.weights[0] / weight.numel**0.5 * (weight.numel / weight.shape[0]) ** 0.5
        return self._lines.drawn_weights() if width > WIDE else None

    def parameters(self) -> list[records.Parameter]:
        names, kinds = self._names.names, self._names.kinds
        return [entry.record(names.get(key, ""), kinds.get(key, "")) for key, entry in self._chosen.items()]

    def built(self) -> list[records.BuiltOptimizer]:
        return [entry.built_record(number) for number, entry in enumerate(self._optimizers.built[: self._built])]


def _kept_in_lists(roots: list[tuple[str, Any]], unowned: set[int], lines: ScriptLines) -> list[KeptInList]:
    """Layers that no optimizer has because a plain list or dict of a module keeps them. `unowned`: parameters that a
    graph ends in and no optimizer has."""
    found: list[KeptInList] = []
    holders = _in_containers(roots)
    for name, root in roots:
        if id(root) not in holders or not any(id(p) in unowned for p in naming.all_parameters(root)):
            continue
        for holder, part, attribute, container in holders[id(root)]:
            if holder != name:
                site, kind = lines.assigned(type(part), attribute), objects.class_name(type(part))
                kept = KeptInList(
                    module=name, holder=holder, kind=kind, attribute=attribute, container=container, site=site
                )
                found.append(kept)
    return found[:MAX_KEPT]


def _in_containers(roots: list[tuple[str, Any]]) -> dict[int, list[tuple[str, Any, str, str]]]:
    """By the identity of what a plain list, tuple or dict of a module holds, also one level further in: the name of
    that module's root, the module, the attribute, the kind of container."""
    found: dict[int, list[tuple[str, Any, str, str]]] = defaultdict(list)
    for holder, root in roots:
        for _, part in naming.tree(root):
            for attribute, value in list((objects.instance_dict(part) or {}).items()):
                if id(type(value)) not in CONTAINERS or type(attribute) is not str:
                    continue
                for key in {id(each) for inner in _values(value) for each in (inner, *_values(inner))}:
                    found[key].append((holder, part, attribute, type(value).__name__))
    return found


def _values(value: Any) -> list[Any]:
    if id(type(value)) not in CONTAINERS:
        return []
    return list(value.values() if type(value) is dict else value[:MAX_INSIDE])[:MAX_INSIDE]
