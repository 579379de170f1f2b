"""One answer for many ranks: what one rank has found is said once for all, and its cause before its consequences.

A rank that is stuck, loops or died is the cause; the ranks that wait for it are the roll-call beneath.
"""

from __future__ import annotations

from dataclasses import replace

from unstuck.families import NOT_LEARNING, STANDING
from unstuck.model import Case, Finding
from unstuck.rules import rank_words
from unstuck.rules.rank_positions import Position, World, world_of
from unstuck.rules.rank_sample import owners_of

ECHOES = frozenset(("waits-on-rank", "progress-unknown", "waits-on-io", "waits-for-nobody", "waits-on-device"))
"""What is said of a rank because another one does not come."""
OF_LOST_PEERS = frozenset(("uncaught-exception", "native-crash"))
"""How a rank ends inside a collective when another one is gone, or when their calls do not fit."""
CAUSES = frozenset(("hang", "loop", "death"))
LOUDNESS = {"error": 0, "warning": 1, "info": 2}


def across_ranks(case: Case, findings: list[Finding]) -> list[Finding]:
    world = world_of(case) if findings else None
    if world is None:
        return findings
    owners = owners_of(case, world)
    findings = [_with_rank(finding, owners) for finding in findings]
    findings = _first_numbers(_merged(findings, world))
    return _parted(_caused(findings, world), world)


def _with_rank(finding: Finding, owners: dict[int, int]) -> Finding:
    where = finding.where
    if where.rank is not None or where.pid not in owners:
        return finding
    return replace(finding, where=replace(where, rank=owners[where.pid]))


def _merged(findings: list[Finding], world: World) -> list[Finding]:
    """The same at the same line on several ranks is one finding."""
    alike: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        where = finding.where
        own: object = id(finding) if where.rank is None else (where.file, where.line)
        alike.setdefault((finding.rule, own), []).append(finding)
    return [_one_of(group, world) for group in alike.values()]


def _one_of(group: list[Finding], world: World) -> Finding:
    if len(group) == 1:
        return group[0]
    first = min(group, key=lambda f: (LOUDNESS[f.severity], f.withdrawn, -f.confidence, f.where.rank or 0))
    known = {finding.where.rank for finding in group if finding.where.rank is not None}
    which = "every rank" if len(known) == world.size else rank_words.ranks(known)
    return replace(first, evidence=(*first.evidence, f"the same on {which}")) if len(known) > 1 else first


def _first_numbers(findings: list[Finding]) -> list[Finding]:
    """A NaN on one rank is averaged into the gradients of all: where it came first is the cause."""
    numeric = [f for f in findings if f.family == "numerics" and f.severity == "error" and f.where.rank is not None]
    if len({f.where.rank for f in numeric}) < 2:
        return findings
    first = min(numeric, key=lambda f: (f.where.step if f.where.step is not None else 1 << 60, -f.confidence))
    later = [f for f in findings if f.family in NOT_LEARNING and f is not first and f.where.rank != first.where.rank]
    return [
        replace(first, consequences=(*first.consequences, *map(_told, later))) if f is first else f
        for f in findings
        if f not in later
    ]


def _caused(findings: list[Finding], world: World) -> list[Finding]:
    """What holds up a rank that others wait for, or ended it, explains what is said of those others."""
    waiting = {rank for rank, position in world.positions.items() if position.call is not None}
    causes = [f for f in findings if _holds_up(f, world)]
    if not causes or not waiting:
        return findings
    cause = min(causes, key=lambda f: (LOUDNESS[f.severity], -f.confidence))
    echoes = [f for f in findings if f not in causes and _is_echo(f, cause, waiting)]
    lines = [line for line in world.roll_call() if line not in cause.evidence]
    told = replace(cause, evidence=(*cause.evidence, *lines), consequences=(*cause.consequences, *map(_told, echoes)))
    return [told if f is cause else f for f in findings if f not in echoes]


def _parted(findings: list[Finding], world: World) -> list[Finding]:
    """Of ranks that came apart: how others ended inside a collective is no matter of its own."""
    cause = next((f for f in findings if f.family == "ranks" and f.severity == "error"), None)
    ends = [f for f in findings if f.rule in OF_LOST_PEERS and f.where.rank in world.positions]
    ends = [f for f in ends if _among_ranks(world.positions[f.where.rank or 0])]
    if cause is None or not ends:
        return findings
    told = replace(cause, consequences=(*cause.consequences, *map(_told, ends)))
    return [told if f is cause else f for f in findings if f not in ends]


def _among_ranks(position: Position) -> bool:
    """It ended in a call, or while the world was being formed."""
    return position.call is not None or position.flight.formed is None


def _holds_up(finding: Finding, world: World) -> bool:
    """An error of a rank that is not where the others wait for it."""
    position = world.positions.get(-1 if finding.where.rank is None else finding.where.rank)
    if position is None or finding.severity != "error" or finding.withdrawn or finding.family not in CAUSES:
        return False
    return finding.rule not in ECHOES and (position.call is None or _died_of_its_own(finding, position))


def _died_of_its_own(finding: Finding, position: Position) -> bool:
    return not position.alive and finding.rule not in OF_LOST_PEERS


def _is_echo(finding: Finding, cause: Finding, waiting: set[int]) -> bool:
    if finding.family == "ranks" or finding.rule in ECHOES:
        return True
    return finding.family in STANDING | {"death"} and finding.where.rank in waiting and finding is not cause


def _told(finding: Finding) -> str:
    return f"{finding.rule}: {finding.title}"
