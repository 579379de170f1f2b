"""Who has which parameter, as it was when last looked at: at the end of the process the model may be gone."""

from __future__ import annotations

from typing import Any

from ...records import Site
from ...records.learning import KeptInList, Stray
from ...records.learning import Parameter as ParameterRecord
from . import kept_in_lists
from .activations import Activations, Layer
from .naming import Names
from .ownership import Ownership
from .script_lines import ScriptLines
from .updates import Parameter, Updates

PARAMETERS = 400
WIDE = 3.0
"""Root of the mean square of a weight times the root of its inputs: 0.6 as torch begins, 1.4 by He's rule."""


class Owners:
    def __init__(
        self, updates: Updates, ownership: Ownership, activations: Activations, names: Names, lines: ScriptLines
    ) -> None:
        self._updates, self._ownership, self._activations = updates, ownership, activations
        self._names, self._lines = names, lines
        self._parameters: dict[int, tuple[Parameter, dict[str, Any]]] = {}
        self.sites: dict[int, Site | None] = {}
        """Where a layer is made, by its place among the activations."""
        self.built: list[dict[str, int]] = []
        self.kept_in: list[KeptInList] = []
        self.strays: list[Stray] = []
        self.first_weights: Site | None = None

    @property
    def gone(self) -> bool:
        """Some of what was there when last looked at is no more."""
        return any(each.ref() is None for each, _ in self._parameters.values())

    def look(self) -> None:
        living = [(key, each) for key, each in self._updates.parameters.items() if each.ref() is not None]
        chosen = {key for key, _ in sorted(living, key=lambda entry: -entry[1].numel)[:PARAMETERS]}
        held, states = self._ownership.holders(), self._ownership.states
        self._parameters = {
            key: (each, states[key].fields(held) if key in states else {}) for key, each in living if key in chosen
        }
        self.built = self._ownership.look()
        self.kept_in = kept_in_lists.find(self._names, self._ownership.unowned(held), self._lines)
        self.strays = self._ownership.strays(self._names)
        self.first_weights = self._lines.first_weights() if self._ownership.alike() else None
        for place, layer in self._activations.layers.items():
            if layer.odd() and self.sites.get(place) is None:
                self.sites[place] = self._drawn_wide(layer) or self._lines.layer(layer.name, self._names)

    def _drawn_wide(self, layer: Layer) -> Site | None:
        """Where the script draws weights itself, if those of this layer are far wider than torch makes them."""
        key = next((key for key, name in self._names.names.items() if name == f"{layer.name}.weight"), None)
        known = self._updates.parameters.get(key) if key is not None else None
        if known is None or not known.weights or len(known.shape) < 2:
            return None
        width = known.weights[0] / known.numel**0.5 * (known.numel / known.shape[0]) ** 0.5
        return self._lines.drawn_weights() if width > WIDE else None

    def parameters(self) -> list[ParameterRecord]:
        return [
            each.record(self._names.names.get(key, ""), self._names.kinds.get(key, ""), more)
            for key, (each, more) in self._parameters.items()
        ]
