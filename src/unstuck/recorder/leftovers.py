"""Gradients that an update written by hand leaves behind: whether the next backward pass adds to them.

Each leaf is followed for itself: in a GAN the gradients of one net are cleared before its own backward pass, not before
that of the other.
"""

from __future__ import annotations

from math import hypot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .stepping import Leaf

MAX_FOLLOWED = 6  # leaves
MAX_ELEMENTS = 1_000_000  # of a gradient that is read whole: some rows of an embedding's are always 0
NUMBERS = 32  # of a gradient that are compared
SAME_FACTOR = 1e-3  # gradients multiplied by one factor after every step are momentum, not left over


class Followed:
    """One leaf, over the backward passes that reach it."""

    __slots__ = ("_cleared", "_factor", "_open", "after", "checked", "leaf", "stale")

    def __init__(self, leaf: Leaf) -> None:
        self.leaf = leaf  # as it was at the backward pass before
        self.stale = self.checked = 0
        self.after: list[float] | None = None  # some numbers of its gradient after that
        self._open = self._cleared = False  # an update was seen, and cleared gradients since
        self._factor = 1.0

    def look(self, leaf: Leaf, gradient: Any) -> None:
        if self.leaf.changed():
            self.checked += self._open
            self.stale += self._open and not self._cleared
            self._open, self._cleared = True, False
        self.leaf = leaf
        if gradient is None or gradient.is_sparse or not bool(gradient.any()) or self._fades(sample(gradient)):
            self._cleared = True

    def _fades(self, left: list[float]) -> bool:
        """The script shrinks its gradients by the same factor each time, to carry on a part of them."""
        after, self.after = self.after, None
        size = hypot(*after) if after is not None else 0.0
        factor = hypot(*left) / size if size else 1.0
        before, self._factor = self._factor, factor
        return factor < 1 - SAME_FACTOR and abs(factor - before) < SAME_FACTOR


class Leftovers:
    def __init__(self) -> None:
        self._followed: dict[int, Followed] = {}

    def before(self, leaves: list[Leaf]) -> None:
        """Before a backward pass that adds to the gradients of these."""
        for leaf in leaves:
            tensor = leaf.tensor()
            known = self._followed.get(id(tensor))
            if known is not None and known.leaf.tensor() is tensor:
                known.look(leaf, tensor.grad)
            elif len(self._followed) < MAX_FOLLOWED and tensor.is_cpu and tensor.numel() <= MAX_ELEMENTS:
                self._followed[id(tensor)] = Followed(leaf)

    def after(self) -> None:
        for known in self._followed.values():
            gradient = getattr(known.leaf.tensor(), "grad", None)
            known.after = sample(gradient) if gradient is not None and not gradient.is_sparse else None

    def counts(self) -> tuple[int, int]:
        """Pairs of updates whose gradients were left over, and pairs checked: of the leaf with the smallest share, for
        one whose gradients nobody uses need not be cleared."""
        checked = [known for known in self._followed.values() if known.checked]
        fewest = min(checked, key=lambda known: (known.stale / known.checked, -known.checked), default=None)
        return (fewest.stale, fewest.checked) if fewest is not None else (0, 0)


def sample(gradient: Any) -> list[float]:
    flat = gradient.detach().reshape(-1)
    return list(flat[:: max(1, len(flat) // NUMBERS)][:NUMBERS].tolist())
