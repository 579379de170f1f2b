"""Whether the helpers of a training without a loader (processes, threads of the script's own) work one at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from unstuck.model import Frame, HotLine, SeenStack, Turns

from .asking import Asking, asking_loop
from .source import Source
from .stack_samples import Sample, seen_stacks, waits_for_others

MIN_SEEN_SHARE = 0.5  # of the looks: then its processes are what it waits for, not its threads
MIN_TIMES = 2  # that a helper must be seen at work
MOST_STACKS = 12  # whose source is read, of those seen most
NATIVE_WAITS = (".recv(", ".readline(", ".acquire(")  # that leave no frame of a library on the stack


class Helped:
    """The processes beneath a training, as often as they were seen at work."""

    def __init__(self) -> None:
        self.looks = self.seen = self.alone = 0
        self.pids = Counter[int]()

    def look(self, working: Iterable[int]) -> None:
        pids = list(working)
        self.looks += 1
        self.seen += bool(pids)
        self.alone += len(pids) == 1
        self.pids.update(pids)


def turns(pid: int, taken: dict[int, list[Sample]], helped: Helped) -> Turns | None:
    """Of the training process `pid`, by its stack samples and looks at its processes."""
    source, samples = Source(), taken.get(pid, [])
    stacks = [stack for stack in seen_stacks(pid, samples, trains=True) if stack.trains and stack.frames]
    total = sum(sample.count for sample in samples if sample.main)
    waiting = [stack for stack in stacks if stack.waits or any(wait in stack.code for wait in NATIVE_WAITS)]
    lines = {(file, line) for stack in waiting for file, line, _ in stack.frames}
    loops: dict[Asking, list[SeenStack]] = {}
    for stack in waiting[:MOST_STACKS]:
        loop = asking_loop(stack.frames, lines, source)
        if loop is not None:
            loops.setdefault(loop, []).append(stack)
    if not loops:
        return None
    loop, there = max(loops.items(), key=lambda item: sum(stack.count for stack in item[1]))
    waits = sum(stack.count for stack in there)
    counts = Counter[tuple[str, int, str]]()
    for stack in there:
        counts[stack.frames[loop.place]] += stack.count
    (frame,) = source.annotate((Frame(*counts.most_common(1)[0][0], user=True),))
    line = HotLine(frame.file, frame.line, frame.function, frame.code, waits / total, total)
    if helped.seen >= MIN_SEEN_SHARE * helped.looks * line.share:
        met = sum(times >= MIN_TIMES for times in helped.pids.values()) or len(helped.pids)
        return Turns(line, (loop.first, loop.last), False, max(met, loop.helpers), helped.seen, helped.alone)
    others = [each for each in samples if not each.main and any(frame.user for frame in each.frames)]
    working = [each for each in others if not waits_for_others(each)]
    seen = sum(each.count for each in working)
    met = len({each.thread for each in working})
    return Turns(line, (loop.first, loop.last), True, max(met, loop.helpers), seen, min(seen, max(0, 2 * waits - seen)))
