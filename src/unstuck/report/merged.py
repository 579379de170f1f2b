"""Run folders of several machines as one Case: one clock, aligned on what the ranks did together, and one world."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from itertools import zip_longest
from operator import itemgetter
from statistics import median
from typing import Any

from unstuck import serial
from unstuck.errors import UsageError
from unstuck.model import Case, Flight, Look, Outcome, Stall
from unstuck.report.saved import Saved, last_sign
from unstuck.rules.rank_sample import ALL_UP_TO, whereabouts
from unstuck.text import seconds

PIDS_A_NODE = 10_000_000  # more than a kernel gives out: added to a pid of the second machine that the first has too
PIDS = frozenset(("pid", "ppid", "pids", "root", "child", "holder", "waiters", "others", "users", "tid"))
MOMENTS = frozenset(
    (
        *("at", "since", "began", "started", "ended", "moved", "now", "read_at", "sample_since"),
        *("entered", "left", "forming", "formed", "disbanded"),
    )
)
WORST: tuple[Outcome, ...] = ("died", "stopped", "interrupted", "running", "finished")
MAX_APART = 3600.0  # seconds: a rank waits half an hour for the others, and clocks of machines differ a little
LOOKS_KEPT = 2  # a proof needs two


def merged(parts: Sequence[Saved]) -> Case:
    """One Case of the folders that several machines left of one run. Raises UsageError where they are of several."""
    _check(parts)
    first = parts[0].case
    cases, taken = [first], _pids(first)
    for number, part in enumerate(parts[1:], 1):
        own = _pids(part.case)
        others = {pid: pid + number * PIDS_A_NODE for pid in own & taken}
        cases.append(_moved(part.case, others, _clock_difference(first, part.case)))
        taken |= own
    now = max(case.now for case in cases)
    standing = any(case.stalls for case in cases)
    cases = [_as_it_stood(case, now) if standing and not case.stalls else case for case in cases]
    return replace(
        first,
        now=now,
        seconds=max(case.seconds for case in cases),
        outcome=min((case.outcome for case in cases), key=WORST.index),
        interrupted=any(case.interrupted for case in cases),
        looks=_looks(cases),
        **_joined(cases),
    )


def slimmed(parts: Iterable[Saved]) -> list[Saved]:
    """Of many machines: where all their ranks are, and the rest of a few of each. They are read one after another."""
    kept: list[Saved] = []
    ranks = 0
    for part in parts:
        ranks += sum(flight.rank is not None for flight in part.case.flights)
        kept.append(part if ranks <= ALL_UP_TO else replace(part, case=whereabouts(part.case)))
    return kept


def _check(parts: Sequence[Saved]) -> None:
    owner: dict[int, Saved] = {}
    sizes: dict[int, Saved] = {}
    for part in parts:
        ranks = {f.rank: f for f in part.case.flights if f.rank is not None and f.world is not None}
        if not ranks:
            raise UsageError(
                f"{part.source} has no ranks",
                cause="none of its processes called init_process_group, or their flight files are gone",
                next_command=f"unstuck report {part.source}",
            )
        for rank, flight in ranks.items():
            if rank in owner:
                raise UsageError(
                    f"rank {rank} is in {owner[rank].source} and in {part.source}",
                    cause="these are folders of different runs, or of one machine twice",
                    next_command=f"unstuck report {part.source}",
                )
            owner[rank] = part
            sizes.setdefault(flight.world or 0, part)
    _check_meeting(parts)
    if len(sizes) > 1:
        said = ", ".join(f"{size} in {part.source}" for size, part in sorted(sizes.items()))
        raise UsageError("these are folders of different runs", cause=f"their worlds have other sizes: {said}")


def _check_meeting(parts: Sequence[Saved]) -> None:
    """The ranks of one run meet at one port, and at about the same time."""
    ports: dict[str, Saved] = {}
    times: list[tuple[float, Saved]] = []
    for part in parts:
        for joined in part.case.worlds_joined:
            if joined.address and joined.restart == 0:
                ports.setdefault(joined.address.rpartition(":")[2], part)
            if part.case.clock_offset:
                times.append((joined.at + part.case.clock_offset, part))
    if len(ports) > 1:
        said = ", ".join(f"{port} in {part.source}" for port, part in ports.items())
        raise UsageError(
            "these are folders of different runs", cause=f"their ranks were to meet at other ports: {said}"
        )
    first, last = (pick(times, key=itemgetter(0), default=None) for pick in (min, max))
    if first and last and last[0] - first[0] > MAX_APART:
        said = f"{last[1].source} began {seconds(last[0] - first[0])} after {first[1].source}"
        raise UsageError("these are folders of different runs", cause=said)


# --- one clock -----------------------------------------------------------------------------------------------


def _clock_difference(first: Case, other: Case) -> float:
    """Seconds to add to the other machine's moments: what both did together, they left at the same time."""
    ours, theirs = _left(first), _left(other)
    shared = [ours[key] - theirs[key] for key in ours.keys() & theirs.keys()]
    return median(shared) if shared else other.clock_offset - first.clock_offset


def _left(case: Case) -> dict[tuple[str, int, str], float]:
    """When the last rank left each collective that is known here."""
    found: dict[tuple[str, int, str], float] = {}
    for flight in case.flights:
        for call in flight.collectives:
            if call.left is not None and not call.asynchronous and not call.raised:
                key = call.group, call.number, call.kind
                found[key] = max(found.get(key, call.left), call.left)
    return found


def _pids(case: Case) -> set[int]:
    """Of its processes, and of the one that started them."""
    return {1, case.root or 1, *(f.pid for f in case.flights), *(p.pid for look in case.looks for p in look.processes)}


def _moved(case: Case, pids: dict[int, int], seconds: float) -> Case:
    return serial.from_plain(Case, _shifted(serial.to_plain(case), "", pids, seconds))


def _shifted(value: Any, key: str, pids: dict[int, int], seconds: float) -> Any:
    if isinstance(value, dict):
        return {name: _shifted(item, name, pids, seconds) for name, item in value.items()}
    if isinstance(value, list):
        return [_shifted(item, key, pids, seconds) for item in value]
    if key in PIDS and type(value) is int and value > 0:
        return pids.get(value, value)
    return value + seconds if key in MOMENTS and type(value) is float and value > 0 else value


# --- one Case ------------------------------------------------------------------------------------------------


def _joined(cases: Sequence[Case]) -> dict[str, Any]:
    """Every field that is a list of things, in the order of time where they have one."""
    found: dict[str, Any] = {}
    for field in fields(Case):
        values = [getattr(case, field.name) for case in cases]
        if field.name in ("command", "looks") or not all(isinstance(value, tuple) for value in values):
            continue
        items = [item for value in values for item in value]
        found[field.name] = tuple(sorted(items, key=lambda item: getattr(item, "at", 0.0)))
    return found


def _looks(cases: Sequence[Case]) -> tuple[Look, ...]:
    """The last looks at every machine, as if they had been one."""
    latest = [[look for look in reversed(case.looks) if look.stacks][:LOOKS_KEPT] for case in cases]
    together = []
    for row in zip_longest(*latest):
        seen = [look for look in row if look is not None]
        together.append(
            Look(
                at=max(look.at for look in seen),
                processes=tuple(process for look in seen for process in look.processes),
                locks=tuple(lock for look in seen for lock in look.locks),
                stacks=True,
                trouble=tuple(dict.fromkeys(line for look in seen for line in look.trouble)),
            )
        )
    return tuple(reversed(together))


def _as_it_stood(case: Case, now: float) -> Case:
    """Nobody looked at this machine while the others stood still: its ranks are where their files say."""
    failed = {died.pid for died in case.deaths}
    held = [f for f in case.flights if f.rank is not None and f.world is not None and not f.ended and f.crash is None]
    pids = {flight.pid for flight in held} - failed
    stalls = tuple(Stall(f.pid, f.phase, last_sign(f), max(0.0, now - last_sign(f))) for f in held if f.pid in pids)
    flights = tuple(_living(flight) if flight.pid in pids else flight for flight in case.flights)
    return replace(case, flights=flights, stalls=stalls)


def _living(flight: Flight) -> Flight:
    return replace(flight, alive=True)
