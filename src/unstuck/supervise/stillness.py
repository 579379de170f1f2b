"""Whether anything moved between two looks besides the clock: stacks, bytes, memory, children."""

from __future__ import annotations

from unstuck.model import Look, Process

BYTES = 4096
MEMORY = 1 << 20
CHILD_CPU = 0.05


def still_since(looks: tuple[Look, ...], pid: int) -> float:
    """Seconds, up to the last look, for which successive looks with stacks showed no movement in `pid` or below it."""
    taken = [look for look in looks if look.stacks]
    if not taken:
        return 0.0
    start = taken[-1].at
    for earlier, later in zip(reversed(taken[:-1]), reversed(taken[1:]), strict=True):
        if moved(earlier, later, pid):
            break
        start = earlier.at
    return taken[-1].at - start


def moved(earlier: Look, later: Look, pid: int) -> bool:
    before = {p.pid: p for p in _family(earlier, pid)}
    after = {p.pid: p for p in _family(later, pid)}
    if before.keys() != after.keys():
        return True
    return any(_moved(before[each], after[each]) for each in before)


def _family(look: Look, pid: int) -> list[Process]:
    """The process and its descendants."""
    inside = {pid}
    for process in look.processes:  # in tree order: parents come first
        if process.ppid in inside:
            inside.add(process.pid)
    return [process for process in look.processes if process.pid in inside]


def _moved(before: Process, after: Process) -> bool:
    return (
        after.io_bytes - before.io_bytes > BYTES
        or abs(after.rss - before.rss) > MEMORY
        or after.children_cpu - before.children_cpu > CHILD_CPU
        or path_of(before) != path_of(after)
    )


def path_of(process: Process) -> tuple[tuple[str, str], ...]:
    """Functions of the user on the main thread's stack: a loop changes lines, not these."""
    thread = process.main_thread
    return tuple((f.file, f.function) for f in thread.frames if f.user) if thread else ()
