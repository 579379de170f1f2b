"""out-of-memory-kill: the kernel OOM-killed a process of the run.

What it sees
    SIGKILL ended the training, or a worker, and in the same run the kernel's counter of OOM kills rose in the memory
    cgroup of that process. If there is no such counter: memory was at the limit.

Why it matters
    A process that needs more memory than the container, the job or the machine has is killed at once: no exception, no
    message, no checkpoint. A worker killed like this shows in main as a broken DataLoader.

Evidence
    The counter before and after, the limit, which process grew and how fast over which steps, and what grew in it: the
    container with its length then and now, if the process had reported one in time.

Fix
    If something grows with the steps, release it. If the need is there from the start, use smaller batches, fewer
    workers or less prefetching, or request more memory from the scheduler.

When it is wrong
    SIGKILL alone proves nothing and is never called an OOM kill here. In a cgroup shared with other jobs the counter
    may have risen for one of them at the very moment somebody else sent a SIGKILL.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from unstuck.model import Case, Finding, Fix, MemoryCurve, MemoryGroup, MemoryPoint, Where
from unstuck.rules.death.memory_growth import (
    cgroups,
    grower_fix,
    grower_site,
    grower_text,
    growers,
    memory_curve,
    whole_machine,
)
from unstuck.rules.rule import Rule
from unstuck.rules.words import process_name, size
from unstuck.text import SIGKILL

LIMIT_REACHED_SHARE = 0.95  # peak of a cgroup without a counter
FULL_SHARE = 0.9  # of a limit, by which the one that was hit is chosen
MIN_OWN_SHARE = 0.8  # of a cgroup's limit, held by the run's own processes: the page cache counts as usage too
MIN_OWN_SHARE_OF_MACHINE = 0.5


@dataclass(frozen=True, slots=True)
class Victim:
    pid: int
    how: str  # it is known to have been killed
    certain: bool = True


@dataclass(frozen=True, slots=True)
class Proof:
    """That memory was the reason, and the limit that was hit."""

    text: str
    limit: MemoryGroup
    confidence: float


def decide(case: Case) -> Iterable[Finding]:
    for victim in _victims(case):
        proof = _proof(case, victim)
        if proof is not None:
            yield _finding(case, victim, proof)
            return


def _victims(case: Case) -> list[Victim]:
    """Processes that SIGKILL ended; those whose end nobody saw only if there is none of the former."""
    if case.outcome not in ("died", "stopped"):
        return []
    victims = [Victim(exit_.pid, "SIGKILL ended it") for exit_ in case.exits if exit_.signal == SIGKILL]
    ends = [*(failed.workers for failed in case.batches_failed), *(died.workers for died in case.deaths)]
    killed = [exit_.pid for workers in ends for exit_ in workers if exit_.exitcode == -SIGKILL]
    killed += [ended.child for ended in case.children_ended if ended.code == -SIGKILL]
    victims += [Victim(pid, "the main process saw that SIGKILL ended it") for pid in killed]
    if victims:
        return list(dict.fromkeys(victims))
    lost = [f.pid for f in case.flights if f.role in ("main", "rank") and not (f.alive or f.ended)]
    lost.sort(key=lambda pid: -_last_rss(case, pid))
    return [Victim(pid, "it is gone, and did not exit by itself", certain=False) for pid in lost]


def _proof(case: Case, victim: Victim) -> Proof | None:
    around, machine = cgroups(case, victim.pid), whole_machine(case)
    counted = [group for group in around if group.kills_before >= 0 and group.kills >= 0]
    for group in counted:
        if group.kills > group.kills_before:
            text = f"the kernel's counter of OOM kills {_rose(group)} in its cgroup {group.path}"
            return Proof(text, _limit_hit(case, victim.pid), 0.97 if victim.certain else 0.85)
    if counted:
        return None  # the kernel says that it was not
    counts = machine is not None and 0 <= machine.kills_before < machine.kills
    if machine is not None and counts and _own_share(case, machine) > MIN_OWN_SHARE_OF_MACHINE:
        return Proof(f"the machine's counter of OOM kills {_rose(machine)}", machine, 0.8)
    for group in around:
        if group.limit and group.peak >= LIMIT_REACHED_SHARE * group.limit and _own_share(case, group) > MIN_OWN_SHARE:
            return Proof(f"memory was at {size(group.peak)} of {size(group.limit)} allowed", group, 0.75)
    return None


def _rose(group: MemoryGroup) -> str:
    return f"rose from {group.kills_before} to {group.kills}"


def _limit_hit(case: Case, pid: int) -> MemoryGroup:
    """The narrowest cgroup that was full; the machine only if it was full itself."""
    around, machine = cgroups(case, pid), whole_machine(case)
    limited = [group for group in around if group.limit]
    full = [group for group in limited if group.peak >= FULL_SHARE * (group.limit or 0)]
    crowded = [machine] if machine and (not limited or machine.usage >= FULL_SHARE * (machine.limit or 0)) else []
    return (full or crowded or limited or around)[0]


def _own_share(case: Case, group: MemoryGroup) -> float:
    """Of a limit, that the run's own processes held when last seen."""
    return sum(_last_rss(case, pid) for pid in group.pids) / group.limit if group.limit else 0.0


def _last_rss(case: Case, pid: int) -> int:
    curve = memory_curve(case, pid)
    return curve.points[-1].rss if curve else 0


def _finding(case: Case, victim: Victim, proof: Proof) -> Finding:
    flight, group = case.flight_of(victim.pid), proof.limit
    growing = _growing(case, victim.pid, group)
    held = next(iter(growers(case, growing)), None)
    main = next((f for f in case.flights if f.role in ("main", "rank") and f.step), flight)
    return RULE.finding(
        severity="error",
        confidence=proof.confidence,
        title=f"{process_name(case, victim.pid)} was OOM-killed: {_limit_text(group)}",
        evidence=(
            f"{victim.how}, and {proof.text}",
            _curve_text(case, victim.pid, growing),
            _others_text(case, growing, group),
            grower_text(held) if held is not None else "",
        ),
        where=replace(
            grower_site(held) if held is not None else Where(),
            pid=victim.pid,
            worker=flight.worker if flight is not None else None,
            rank=flight.rank if flight is not None else None,
            step=main.step if main is not None else None,
        ),
        fix=grower_fix(held) if held is not None else _fix(case, growing, group),
        seen_by="kernel",
    )


def _growing(case: Case, victim: int, group: MemoryGroup) -> int:
    """The process of that group that grew most; the victim itself unless another grew twice as much."""
    growth = {curve.pid: _growth(curve) for curve in case.memory if curve.points and curve.pid in group.pids}
    most = max(growth, key=lambda pid: growth[pid], default=victim)
    return most if growth.get(most, 0) > 2 * growth.get(victim, 0) else victim


def _while_training(curve: MemoryCurve) -> tuple[MemoryPoint, ...]:
    """From the first step on; the whole curve if no step was counted. Importing torch is no growth."""
    stepped = tuple(point for point in curve.points if point.step)
    return stepped if len(stepped) > 1 else curve.points


def _growth(curve: MemoryCurve) -> int:
    points = _while_training(curve)
    return points[-1].rss - points[0].rss


def _curve_text(case: Case, victim: int, growing: int) -> str:
    """`its memory rose from 312 MB at step 1 to 1.9 GB at step 240, 6.6 MB per step, as last seen`."""
    curve = memory_curve(case, growing)
    if curve is None:
        return ""
    first, last = _while_training(curve)[0], _while_training(curve)[-1]
    steps, rise = last.step - first.step, last.rss - first.rss
    subject = "its memory" if growing == victim else f"the memory of {process_name(case, growing)}"
    verb = "rose" if rise > 0.1 * last.rss else "was nearly level,"
    if steps <= 0:
        return (
            f"{subject} {verb} from {size(first.rss)} to {size(last.rss)} in {last.at - first.at:.0f} s, as last seen"
        )
    rate = f", {size(rise / steps)} per step" if rise > 0 else ""
    span = f"from {size(first.rss)} at step {first.step:,} to {size(last.rss)} at step {last.step:,}"
    return f"{subject} {verb} {span}{rate}, as last seen"


def _others_text(case: Case, growing: int, group: MemoryGroup) -> str:
    others = [pid for pid in group.pids if pid != growing]
    held = sum(_last_rss(case, pid) for pid in others)
    if not group.limit or held <= 0.1 * group.limit:
        return ""
    others_text = "another process of the run" if len(others) == 1 else f"{len(others)} other processes of the run"
    return f"{others_text} held up to {size(held)}"


def _limit_text(group: MemoryGroup) -> str:
    if not group.version:
        return f"the machine's {size(group.limit or 0)} were used up"
    return f"the limit of {size(group.limit)} was reached" if group.limit else "its cgroup ran out of memory"


def _fix(case: Case, growing: int, group: MemoryGroup) -> Fix:
    flight = case.flight_of(growing)
    if flight is not None and flight.role == "worker":
        return Fix(
            "Keep less in the dataset: read samples from disk when they are needed instead of collecting them, or "
            "use fewer workers and a smaller prefetch_factor.",
            setting="prefetching",
        )
    fewer = " fewer workers," if any(loader.num_workers for loader in case.loaders) else ""
    smaller = f"Use smaller batches,{fewer} or give the run more than {size(group.limit or group.peak)}."
    return Fix(smaller, setting="accumulation")


RULE = Rule(
    "out-of-memory-kill",
    "death",
    decide,
    explains=frozenset({"memory-leak-in-loop", "uncaught-exception", "ended-from-outside"}),
)
