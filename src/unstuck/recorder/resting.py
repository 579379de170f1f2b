"""Where steps are short, the hooks rest: sixty steps are only counted, then one is noted as all were at first.

A step of a millisecond feels every hook, most of all by what it pushes out of the caches. While they rest, the loader's
stores where it is, the optimizer's counts down, and the one at the backward pass is out; in longer steps it still reads
the loss, or every second one, and wakes the others if it stands out. That is exact where each batch makes one backward
pass and one step, so it is done only there.
"""

from __future__ import annotations

from time import monotonic_ns

from . import dispatch, flight, hiding
from . import layout as at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .loading import Loading

MIN_STEPS = 12_000  # made before: what a training shows at first is all noted
MIN_TIME = 30_000_000_000  # … or nanoseconds, where the losses are still read
SHORT_STEP = flight.SHORT  # nanoseconds: in longer steps losses are read, where they are at hand
HALF = 8_000_000  # nanoseconds: in shorter ones every second loss is
LONG_STEP = flight.SLOW  # longer ones do not feel the hooks
LEFT, STEPS, BACKWARDS = flight.LEFT, flight.STEPS, flight.BACKWARDS


class Resting:
    """The loader whose batches make the steps, and what was counted when the hooks began to rest."""

    __slots__ = (
        "_before",
        "_began",
        "_known",
        "_rested",
        "_sampled_at",
        "_settled",
        "_waited",
        "_woke",
        "calm",
        "hooks",
        "on_gpu",
        "passes_over",
        "reads_losses",
        "unfit",
    )

    def __init__(self) -> None:
        self.hooks: list[Callable[[Loading | None], object]] = []
        """Each is called with that loader, to rest, and with None, to be there again."""
        self.calm = True
        """No loss stands out, or may at any step."""
        self.on_gpu = False
        """To read a loss would be to wait for it."""
        self._forget()

    def _forget(self) -> None:
        self._known: Loading | None = None
        self._before: tuple[Any, ...] = (None, 0, 0, 0)
        self.unfit = False
        """There are several optimizers: their steps are told apart."""
        self.reads_losses = False
        """While the others rest, the hook at the backward pass does not."""
        self.passes_over = 0
        """Losses whose number has one of these bits are not read by it."""
        self._began = self._rested = self._sampled_at = self._settled = self._waited = self._woke = 0

    def forget(self) -> None:
        """In a forked child: the steps are its parent's."""
        self._forget()
        for hook in self.hooks:
            hook(None)

    def rests(self) -> bool:
        """Hooks rest, but for a step now and then."""
        return self._known is not None

    def sampled(self) -> None:
        """A sampled step has ended. If every batch since the last one has made one step, the hooks rest from now on."""
        self._weigh()
        state, now = flight.state, monotonic_ns()
        known = dispatch.module("loading").in_use()
        counts = (known, 0 if known is None else known.given(), state[STEPS], state[BACKWARDS])
        (same, *before), self._before = self._before, counts
        took, self._sampled_at = now - self._sampled_at, now
        self._began = self._began or now
        made = {after - earlier for after, earlier in zip(counts[1:], before, strict=True)}
        self.reads_losses = took >= max(made) * SHORT_STEP
        self.passes_over = int(took < max(made) * HALF)
        longest = SHORT_STEP if self.on_gpu else LONG_STEP
        steady = known is not None and known is same and len(made) == 1 and took < max(made) * longest
        unwatched = self.calm and not self.unfit and not state[flight.WATCHED] and not hiding.has_compiled()
        seen = state[STEPS] >= MIN_STEPS or (self.reads_losses and now - self._began >= MIN_TIME)
        self._known = known if steady and unwatched and seen else None
        self.again()

    def again(self) -> bool:
        """A step has ended that was noted: whether the hooks rest now."""
        self._weigh()
        known, state = self._known, flight.state
        if known is None or known.ended or not self.calm:
            return False
        flight.words[at.W_STEP], flight.words[at.W_RESTED] = state[STEPS], at.BEGUN
        for hook in self.hooks:
            hook(known)
        self._settled = state[LEFT] = at.RESTS
        return True

    def settle(self) -> None:
        """Count the steps that were made since the hooks began to rest."""
        state, known = flight.state, self._known
        made, self._settled = self._settled - state[LEFT], state[LEFT]
        state[STEPS] += made
        state[BACKWARDS] += made
        self._rested += made
        if known is not None:
            known.drawn += made

    def end(self, noted: int = 1) -> None:
        """The hooks are there again, for so many steps at the least."""
        known, state, words = self._known, flight.state, flight.words
        if not self._settled or known is None:
            return
        self.settle()
        known.drawn += 0 < words[at.W_RESTED] == state[LEFT]  # its step is still to come
        self._settled = state[LEFT] = words[at.W_RESTED] = 0
        words[at.W_STEP] = self._woke = state[STEPS]
        self._waited = known.waited
        for hook in self.hooks:
            hook(None)
        state[flight.DUE] = state[STEPS] + noted

    def give_up(self) -> None:
        self.end()
        self._known, self.unfit = None, True

    def _weigh(self) -> None:
        """What was waited for the batches that were noted stands for the others as well."""
        if self._rested and self._known is not None:
            noted = max(1, flight.state[STEPS] - self._woke)
            self._known.waited += (self._known.waited - self._waited) * self._rested // noted
        self._rested = 0


resting = Resting()
follow, leave, rests, forget = resting.hooks.append, resting.hooks.remove, resting.rests, resting.forget
sampled, again, settle = resting.sampled, resting.again, resting.settle
end, give_up = resting.end, resting.give_up
