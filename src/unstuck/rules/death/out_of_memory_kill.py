"""out-of-memory-kill: the kernel killed a process of the run for want of memory.

What it sees
    The training, or a worker, ended by SIGKILL, and in the same run the kernel's counter of kills for want of memory
    rose in the memory cgroup of that process. Where there is no such counter: memory stood at the limit.

Why it matters
    A process that asks for more memory than the container, the job or the machine has is killed by the kernel at
    once: no exception, no message, no checkpoint. A worker killed so shows in main as a broken data loader.

Evidence
    The counter before and after, the limit, which process grew and how fast over which steps, and what grew in it:
    the container with its length then and now, where the process itself was asked in time.

Fix
    If something grows with the steps, let go of it. If the need is there from the start, take smaller batches, fewer
    workers or less prefetching, or ask the scheduler for more memory.

When it is wrong
    A SIGKILL alone proves nothing and is never called so here. In a cgroup shared with other jobs the counter may have
    risen for one of them at the very moment somebody else sent a SIGKILL.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from unstuck.model import Case, Finding, Fix, MemoryGroup, Where
from unstuck.rules.death import memory
from unstuck.rules.death.holders import holders, place, sentence
from unstuck.rules.rule import Rule

SIGKILL = 9


@dataclass(frozen=True, slots=True)
class Victim:
    pid: int
    how: str
    """How it is known to have been killed."""
    certain: bool = True


def decide(case: Case) -> Iterable[Finding]:
    for victim in _victims(case):
        proof = _proof(case, victim)
        if proof is not None:
            yield _finding(case, victim, *proof)
            return


def _victims(case: Case) -> list[Victim]:
    """Processes that ended by SIGKILL; a process whose end nobody saw only where none is known to have."""
    if case.outcome not in ("died", "stopped"):
        return []
    found = [Victim(end.pid, "it ended by SIGKILL") for end in case.exits if end.signal == SIGKILL]
    ends = [*(failed.workers for failed in case.batches_failed), *(died.workers for died in case.deaths)]
    killed = [exit_.pid for workers in ends for exit_ in workers if exit_.exitcode == -SIGKILL]
    found += [Victim(pid, "the main process saw it end by SIGKILL") for pid in killed]
    if found:
        return list(dict.fromkeys(found))
    lost = [f for f in case.flights if f.role in ("main", "rank") and not (f.alive or f.ended)]
    lost.sort(key=lambda flight: -_last_rss(case, flight.pid))
    return [Victim(f.pid, "it is gone, and it did not end by itself", certain=False) for f in lost]


def _proof(case: Case, victim: Victim) -> tuple[str, MemoryGroup, float] | None:
    """What proves that memory was the reason, the limit that was hit, and how sure that is."""
    around = memory.groups_of(case, victim.pid)
    counted = [group for group in around if group.kills_before >= 0 and group.kills >= 0]
    for group in counted:
        if group.kills > group.kills_before:
            text = (
                f"the kernel's counter of kills for want of memory rose from {group.kills_before} to {group.kills} "
                f"in its cgroup {group.path}"
            )
            return text, _hit(case, victim.pid), 0.97 if victim.certain else 0.85
    if counted:
        return None  # the kernel says that it was not
    whole = memory.machine(case)
    if whole is not None and 0 <= whole.kills_before < whole.kills and _filled(case, whole) > 0.5:
        text = f"the machine's counter of kills for want of memory rose from {whole.kills_before} to {whole.kills}"
        return text, whole, 0.8
    for group in around:
        if group.limit and group.peak >= memory.NEAR * group.limit and _filled(case, group) > 0.8:
            return f"memory stood at {memory.size(group.peak)} of {memory.size(group.limit)} allowed", group, 0.75
    return None


def _hit(case: Case, pid: int) -> MemoryGroup:
    """The limit that was reached: the narrowest cgroup that was full; the machine only if it was full itself."""
    around = memory.groups_of(case, pid)
    limited = [group for group in around if group.limit]
    full = [group for group in limited if group.peak >= 0.9 * (group.limit or 0)]
    whole = memory.machine(case)
    crowded = [whole] if whole and (not limited or whole.usage >= 0.9 * (whole.limit or 0)) else []
    return (full or crowded or limited or around)[0]


def _filled(case: Case, group: MemoryGroup) -> float:
    """Share of a limit that the run's own processes held when last seen: files in the cache count as usage too."""
    return sum(_last_rss(case, pid) for pid in group.pids) / group.limit if group.limit else 0.0


def _last_rss(case: Case, pid: int) -> int:
    curve = memory.curve_of(case, pid)
    return curve.points[-1].rss if curve else 0


def _finding(case: Case, victim: Victim, proof: str, group: MemoryGroup, confidence: float) -> Finding:
    flight = case.flight_of(victim.pid)
    grower = _grower(case, victim.pid, group)
    held = next(iter(holders(case, grower)), None)
    limit = _limit_text(group)
    evidence = [f"{victim.how}, and {proof}", *_curve_lines(case, victim.pid, grower, group)]
    if held is not None:
        evidence.append(sentence(held))
    main = next((f for f in case.flights if f.role in ("main", "rank") and f.step), flight)
    where = replace(place(held) if held else Where(), pid=victim.pid, step=main.step if main else None)
    if flight is not None:
        where = replace(where, worker=flight.worker, rank=flight.rank)
    return RULE.finding(
        severity="error",
        confidence=confidence,
        title=f"the kernel killed {memory.who(case, victim.pid)} for want of memory: {limit}",
        evidence=tuple(evidence),
        where=where,
        fix=Fix(memory.remedy(held) if held else _fix_without_holder(case, grower, group)),
        seen_by="kernel",
    )


def _grower(case: Case, victim: int, group: MemoryGroup) -> int:
    """The process of that group that grew most; the victim itself unless another grew twice as much."""
    curves = {curve.pid: memory.growth(curve) for curve in case.memory if curve.points and curve.pid in group.pids}
    most = max(curves, key=lambda pid: curves[pid], default=victim)
    return most if curves.get(most, 0) > 2 * curves.get(victim, 0) else victim


def _curve_lines(case: Case, victim: int, grower: int, group: MemoryGroup) -> list[str]:
    said = []
    curve = memory.curve_of(case, grower)
    if curve is not None:
        subject = "its memory" if grower == victim else f"the memory of {memory.who(case, grower)}"
        verb = "went" if memory.growth(curve) > 0.1 * curve.points[-1].rss else "stood nearly level,"
        said.append(f"{subject} {verb} {memory.grew(curve)}, as last seen")
    others = [pid for pid in group.pids if pid != grower]
    rest = sum(_last_rss(case, pid) for pid in others)
    if rest and group.limit and rest > 0.1 * group.limit:
        said.append(f"{len(others)} other processes of the run held up to {memory.size(rest)} together")
    return said


def _limit_text(group: MemoryGroup) -> str:
    if not group.version:
        return f"the machine's {memory.size(group.limit or 0)} were used up"
    return f"the limit of {memory.size(group.limit)} was reached" if group.limit else "its cgroup ran out"


def _fix_without_holder(case: Case, grower: int, group: MemoryGroup) -> str:
    flight = case.flight_of(grower)
    if flight is not None and flight.role == "worker":
        return (
            "Let the data set keep less: read samples from disk when they are asked for instead of collecting them, or "
            "use fewer workers and a smaller prefetch_factor."
        )
    workers = max((loader.num_workers for loader in case.loaders), default=0)
    fewer = " fewer workers," if workers else ""
    return f"Take smaller batches,{fewer} or give the run more than {memory.size(group.limit or group.peak)}."


RULE = Rule(
    "out-of-memory-kill",
    "death",
    decide,
    explains=frozenset({"memory-leak-in-loop", "uncaught-exception", "ended-from-outside"}),
)
