"""A step is whatever repeats: an update of the optimizer that leads, or, where there is none, a backward pass after
which parameters have changed."""

from __future__ import annotations

import sys
from _weakref import ref

from . import dispatch, flight, hiding, resting
from . import layout as at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .leftovers import Leftovers

NODES = 400  # of a graph that are looked through for its parameters
LEAVES = 3  # of these that are followed
NUMBERS = 32  # of each that are compared
MANY = 64  # backward passes without an optimizer's step, after which they are looked at for themselves


class Leaf:
    """A tensor that is trained, as it was at the last backward pass."""

    __slots__ = ("some", "tensor", "version")

    def __init__(self, tensor: Any) -> None:
        self.tensor: Callable[[], Any] = ref(tensor)
        self.version = tensor._version
        self.some = some_numbers(tensor)

    def changed(self) -> bool:
        tensor = self.tensor()
        if tensor is None:
            return True  # `w = (w - rate * gradient).requires_grad_()`: another one has taken its place
        return bool(tensor._version != self.version or some_numbers(tensor) != self.some)


def some_numbers(tensor: Any) -> list[float] | None:
    """Written through `.data` a tensor's own version does not change: then its content tells. Of several numbers: an
    update may be too small for one of them."""
    if not tensor.is_cpu or not tensor.numel() or tensor.is_sparse:
        return None
    row = tensor.detach()
    while row.dim() > 1:
        row = row[0]
    return list(row.reshape(-1)[:NUMBERS].tolist())


def updated(leaves: list[Leaf]) -> bool:
    """Those that live have changed, or all were replaced: a state of a solver is made anew, beside lasting weights."""
    living = [leaf for leaf in leaves if leaf.tensor() is not None]
    return any(leaf.changed() for leaf in living) if living else bool(leaves)


class ByHand:
    """Updates that no optimizer makes."""

    __slots__ = (
        "_before", "_even", "_first", "_leaves", "_looked", "_missed", "_optimizers", "active", "followed", "inside",
        "leftovers", "made",
    )  # fmt: skip

    def __init__(self) -> None:
        self.forget()
        self.inside = False
        """An optimizer's step is under way: its closure calls backward as often as it likes."""

    def forget(self) -> None:
        self.followed = 0  # the step after which the passes of a training without a loader were last followed
        self._leaves: list[Leaf] = []
        self.leftovers: Leftovers | None = None
        self._before = self._optimizers = self.made = 0
        self._looked = self._missed = 0
        """Backward passes made at the last look, and those that no optimizer has stepped after since it was seen to."""
        self._even = False
        """Between the last two looks an optimizer stepped after each."""
        self.active = False
        """No optimizer has stepped, or none for many backward passes."""
        self._first = False
        """The sampled step that is under way is the first of a pair."""

    def looks(self) -> bool:
        """Asked at backward passes that are looked at anyway: is it to be seen here what is made by hand?"""
        by_optimizers, backwards = flight.state[flight.STEPS] - self.made, flight.state[flight.BACKWARDS]
        passed, self._looked = backwards - self._looked, backwards
        stepped = by_optimizers - self._optimizers
        if stepped:
            self._optimizers, self._before, self._leaves = by_optimizers, backwards, []
            self._missed = passed - stepped if self._even and passed > stepped else 0
        elif not self.active:
            self._missed += passed
        self._even = passed == stepped
        self.active = not by_optimizers or backwards - self._before >= MANY
        settle()
        return self.active

    def before_backward(self, leaves: list[Any], *, adds: bool) -> bool:
        """True: parameters have changed since the backward pass before: a step was made. `adds`: this pass adds to the
        gradients of its leaves."""
        if self.inside and flight.state[flight.BACKWARDS] - self._before <= MANY:
            return False
        with hiding.Hidden():
            stepped = updated(self._leaves)
            self._leaves = [Leaf(leaf) for leaf in leaves[:LEAVES]]
            if adds and self.made + stepped <= flight.FULL_STEPS:
                if self.leftovers is None:
                    from .leftovers import Leftovers

                    self.leftovers = Leftovers()
                self.leftovers.before(self._leaves)
        if stepped:
            self._catch_up()
        self.made += stepped
        self.active = self.active or stepped
        settle()
        return stepped

    def _catch_up(self) -> None:
        """The first update by hand after an optimizer's is seen late: those before it were made in the same way."""
        if self.made + self._optimizers:
            self.made += self._missed
            flight.state[flight.STEPS] += self._missed
        self._missed = 0

    def turn(self) -> None:
        """A sampled step begins and ends at a backward pass, when its modules have been called. Where they are to be
        seen, the next one is sampled, too."""
        first, self._first = self._first and flight.full(), not flight.state[flight.FULL]
        turn(again=first and dispatch.ask("learning", "observes"))

    def last(self) -> None:
        """At the end of the process: the last update has no backward pass after it."""
        resting.end()
        flight.words[at.W_STEP] = flight.steps()
        living = [leaf for leaf in self._leaves if leaf.tensor() is not None]
        gone = self.made > 1 and len(living) < len(self._leaves)  # the model is: where it was trained, this once more
        if self.active and (gone or any(leaf.changed() for leaf in living)):
            count()


def leaves_of(root: Any) -> list[Any]:
    """Parameters that a graph ends in: the first that are found."""
    found: list[Any] = []
    torch = sys.modules["torch"]
    plain = (torch.Tensor, torch.nn.Parameter)
    node = getattr(root, "grad_fn", None)
    waiting, seen = [node] if node is not None else [], {node}
    while waiting and len(seen) < NODES and len(found) < LEAVES:
        node = waiting.pop()
        tensor = getattr(node, "variable", None)
        if type(tensor) in plain:
            found.append(tensor)
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)
    return found


def count() -> None:
    """One more step is made."""
    made = flight.state[flight.STEPS] = flight.state[flight.STEPS] + 1
    flight.words[at.W_STEP] = made
    settle()


def settle() -> None:
    """Whether backward passes are to be looked at closely: in steps that probes hear of, and where none is counted."""
    state = flight.state
    state[flight.CLOSE] = int(state[flight.PROBED] or by_hand.active or not state[flight.STEPS])


def turn(again: bool | None = False) -> None:
    """A sampled step has ended, or one begins; what the supervisor asks for is answered. After the first steps probes
    hear of one only where the time for it is earned: where steps are short, most are only timed."""
    flight.turn(again)
    state = flight.state
    probed = state[flight.FULL] and (state[flight.STEPS] < flight.FULL_STEPS or dispatch.module("governor").allows())
    if probed != state[flight.PROBED]:
        state[flight.PROBED] = int(probed)
        dispatch.emit("sampling_changed", bool(probed))
    settle()
    if flight.words[at.W_REQUEST]:
        answer()
    since = state[flight.STEPS] - by_hand.followed
    if state[flight.STEPS] > 1 and not flight.words[at.W_LOADERS] and (probed or not 0 <= since <= flight.OFTEN):
        by_hand.followed = state[flight.STEPS]
        dispatch.emit("stepped_without_loader", sys._getframe(1), state[flight.STEPS])


def answer() -> None:
    """What the supervisor asks for through the request word, on the thread that trains."""
    w = flight.words
    wanted, w[at.W_REQUEST] = w[at.W_REQUEST], 0
    frame = sys._getframe(1)
    if wanted & at.ASK_LOOPS:
        dispatch.emit("asked_loops", frame)
    if wanted & at.ASK_GROWTH:
        dispatch.emit("asked_growth", frame)
    w[at.W_ANSWERED] += 1


by_hand = ByHand()
forget, last = by_hand.forget, by_hand.last
