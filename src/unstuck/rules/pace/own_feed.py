"""What making a batch takes in a training without a loader: lines of the script lead to the loss before any layer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Literal

from unstuck.model import Case, HotLine, SeenStack, Strain
from unstuck.recorder.records.loops import FedBy
from unstuck.rules.pace.loader_waits import MIN_BATCHES, MIN_LOST_SECONDS

MIN_OWN_SHARE = 0.5  # of the stack samples: many make their data as they go, on purpose; here that is most of the time
MIN_MAKING_SECONDS = 2e-3  # for a batch: what takes less is no work that could be done elsewhere
MIN_STEADY_SHARE = 0.5  # of the time that a batch takes on average
MIN_SAMPLES = 60  # of the thread that trains
_SLEEPS = re.compile(r"\bsleep\s*\(")
Maker = Literal["the training itself", "another thread", "another process"]


@dataclass(frozen=True)
class OwnFeed:
    """One training that makes its batches itself, and how long that takes."""

    strain: Strain
    share: float  # of the time: at the lines that make the batch, or wait for it
    seconds: float  # from the first step to the last
    between: float  # seconds of an ordinary step in the script's own code
    line: HotLine  # of these, in the thread that trains; its share is that of the time
    hot: HotLine  # the line in which whoever makes the batch spends most of its time
    maker: Maker

    @property
    def making(self) -> float:
        """Seconds of a step that go into its batch."""
        return self.share * self.strain.seconds / max(1, self.strain.steps)

    @property
    def lost(self) -> float:
        return self.share * self.seconds

    @property
    def starves(self) -> bool:
        # Every step must have its part: a simulator that is waited for once in a while is no pace.
        often = self.strain.steps >= MIN_BATCHES and self.between >= MIN_STEADY_SHARE * self.making
        enough = often and self.lost >= MIN_LOST_SECONDS
        return enough and self.share >= MIN_OWN_SHARE and self.making >= MIN_MAKING_SECONDS


def own_feeds(case: Case) -> list[OwnFeed]:
    """The worst first. Each watch over a training tells by itself: what the last one missed was true all the same."""
    feeds = (_feed(case, strain) for strain in case.strains if strain.stacks)
    return sorted((feed for feed in feeds if feed is not None), key=lambda feed: (not feed.starves, -feed.share))


def _feed(case: Case, strain: Strain) -> OwnFeed | None:
    lines = [line for each in case.feedings if each.pid == strain.pid for line in each.lines]
    steps = next((trend.steps for trend in case.trends if trend.pid == strain.pid), ())
    own = [stack for stack in strain.stacks if stack.trains]
    total = sum(stack.count for stack in own)
    if not steps or not lines or total < MIN_SAMPLES:
        return None
    # A line beneath which a model runs makes no batch: it plays, asks a teacher, embeds.
    plain = [line for line in lines if not any(stack.model and _is_at(stack, line) for stack in own)]
    making = [stack for stack in own if any(_is_at(stack, line) for line in plain)]
    if not making:
        return None
    line = _most(((stack, _place(stack, plain)) for stack in making), total)
    waiting = [stack for stack in making if stack.waits]
    maker: Maker = "the training itself"
    hot = _most(((stack, 0) for stack in making), sum(stack.count for stack in making))
    if 2 * sum(stack.count for stack in waiting) > sum(stack.count for stack in making):
        others = [stack for stack in strain.stacks if not (stack.trains or stack.waits) and stack.frames]
        if not others:
            hot = line
        else:
            counts = Counter({pid: sum(s.count for s in others if s.pid == pid) for pid in {s.pid for s in others}})
            pid = counts.most_common(1)[0][0]
            maker = "another thread" if pid == strain.pid else "another process"
            hot = _most(((stack, 0) for stack in others if stack.pid == pid), counts[pid])
    seconds = steps[-1].ended - steps[0].ended
    between = median(step.seconds - step.data - step.backward - step.optimizer for step in steps)
    return OwnFeed(strain, sum(stack.count for stack in making) / total, seconds, between, line, hot, maker)


def _is_at(stack: SeenStack, line: FedBy) -> bool:
    return _frame_at(stack, line) is not None


def _frame_at(stack: SeenStack, line: FedBy) -> int | None:
    found = (n for n, (file, at, _) in enumerate(stack.frames) if file == line.file and line.first <= at <= line.last)
    return next(found, None)


def _place(stack: SeenStack, lines: list[FedBy]) -> int:
    return next(n for line in lines if (n := _frame_at(stack, line)) is not None)


def _most(stacks: Iterable[tuple[SeenStack, int]], total: int) -> HotLine:
    """The line that most of them have at that place."""
    counts = Counter[tuple[str, int, str]]()
    codes: dict[tuple[str, int, str], str] = {}
    for stack, place in stacks:
        site = stack.frames[place]
        counts[site] += stack.count
        codes.setdefault(site, stack.code if not place else "")
    site, count = counts.most_common(1)[0]
    sleeps = "sleep" if _SLEEPS.search(codes[site]) else ""
    return HotLine(*site, code=codes[site], share=count / total, samples=total, waiting=sleeps)
