"""world-never-formed: ranks wait in `init_process_group` for others that never come.

What it sees
    Processes called `init_process_group` and it has not returned: the world they want has more ranks than came, two of
    them have the same number, or they were sent to different addresses.

Why it matters
    Nothing begins until the last rank is there. The wait ends with the timeout of the store, after minutes.

Evidence
    How many ranks there are to be, which came, which are missing, at which address each of them waits, since when.

Fix
    Start as many ranks as WORLD_SIZE says, each with its own RANK, all with the same MASTER_ADDR and MASTER_PORT.

When it is wrong
    Ranks that are started by hand or by a scheduler, one after another. Reported at once only where they meet on this
    machine and whoever started them is done; else after the time of any other standstill, or at Ctrl-C.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from unstuck.model import Case, Finding, Flight, Where
from unstuck.recorder.records.ranks import WorldJoined
from unstuck.rules import rank_words
from unstuck.rules.rule import Rule
from unstuck.text import count, seconds

LOCAL = ("127.", "localhost", "::1", "[::1]", "/")  # an address that only this machine can reach
STARTS_NOBODY = ("child", "poll", "pipe-read", "socket")  # what a launcher that has started all waits for


def decide(case: Case) -> Iterable[Finding]:
    waiting = [f for f in case.flights if f.alive and f.forming and f.formed is None and f.role != "worker"]
    asked = {joined.pid: joined for joined in case.worlds_joined}
    waiting = [flight for flight in waiting if flight.pid in asked]
    if not waiting or case.outcome == "finished":
        return
    first = min(waiting, key=lambda flight: flight.forming)
    standing = max(
        (stall.standing for stall in case.stalls if stall.pid == first.pid and not stall.excuse), default=0.0
    )
    reason = _reason(case, waiting, asked)
    if reason is None or not _counts(case, first, asked, standing):
        return
    title, missing, fix = reason
    joined = asked[first.pid]
    file, line, function = joined.site or (None, None, None)
    yield RULE.finding(
        severity="error",
        confidence=0.9,
        title=title,
        evidence=(
            f"{rank_words.ranks(_numbers(waiting))} {rank_words.verb(_numbers(waiting), 'waits', 'wait')} in "
            f"init_process_group for {seconds(standing)}",
            missing,
            *_addresses(waiting, asked),
        ),
        where=Where(file, line, function, pid=first.pid, rank=first.rank),
        fix=fix,
    )


def _numbers(flights: list[Flight]) -> list[int]:
    return [flight.rank or 0 for flight in flights]


def _reason(case: Case, waiting: list[Flight], asked: dict[int, WorldJoined]) -> tuple[str, str, str] | None:
    """Title, evidence and fix; None where nothing is wrong but the time."""
    world = max((flight.world or 0 for flight in waiting), default=0)
    living = {flight.pid for flight in case.flights if flight.alive}
    came = Counter(joined.rank for joined in asked.values() if joined.rank is not None and joined.pid in living)
    twice = [rank for rank, times in came.items() if times > 1]
    addresses = {asked[flight.pid].address for flight in waiting}
    sizes = {flight.world for flight in waiting}
    if twice:
        said = f"{rank_words.ranks(twice)} came more than once"
        return f"{said}, so the world of {world} never forms", said, "Give every process its own RANK."
    if len(sizes) > 1:
        said = f"the ranks expect worlds of {', '.join(str(size) for size in sorted(size or 0 for size in sizes))}"
        return f"{said}: none of them forms", said, "Give every process the same world size."
    if len(addresses) > 1:
        return (
            "the ranks wait for each other at different addresses",
            f"{len(addresses)} different addresses",
            "Give every rank the same MASTER_ADDR and MASTER_PORT (or init_method).",
        )
    absent = [rank for rank in range(world) if rank not in came]
    if not absent:
        return None
    return (
        f"the world of {count(world, 'rank')} never forms: {rank_words.ranks(absent)} did not come",
        f"{len(came)} of {world} ranks called init_process_group; {rank_words.ranks(absent)} did not",
        f"Start {count(world, 'rank')}, or set WORLD_SIZE (world_size) to the number that is started.",
    )


def _counts(case: Case, first: Flight, asked: dict[int, WorldJoined], standing: float) -> bool:
    """Nobody can come any more; or it has lasted long, or a person asks."""
    times = case.times
    stall = next((stall for stall in case.stalls if stall.pid == first.pid), None)
    if stall is not None and stall.suspect and (case.interrupted or case.asked):
        return True
    local = asked[first.pid].address.startswith(LOCAL)
    return standing >= (max(times.proven, times.suspect) if local else times.silent) and _all_started(case)


def _all_started(case: Case) -> bool:
    """Every process of the run is a rank in `init_process_group`, or waits for its children."""
    look = next((look for look in reversed(case.looks) if look.stacks), None)
    if look is None:
        return False
    forming = {flight.pid for flight in case.flights if flight.alive and flight.forming and flight.formed is None}
    for process in look.processes:
        main = process.main_thread
        if process.pid in forming or process.role in ("helper", "worker") or main is None:
            continue
        if main.wait is None or main.wait.kind not in STARTS_NOBODY or main.wait.timed:
            return False
    return True


def _addresses(waiting: list[Flight], asked: dict[int, WorldJoined]) -> list[str]:
    at: dict[str, list[int]] = {}
    for flight in waiting:
        at.setdefault(asked[flight.pid].address or "a store of their own", []).append(flight.rank or 0)
    return [f"{rank_words.ranks(ranks)}: {address}" for address, ranks in list(at.items())[:4]]


RULE = Rule(
    "world-never-formed",
    "ranks",
    decide,
    explains=frozenset(("waits-on-rank", "progress-unknown", "waits-on-io", "waits-for-nobody")),
    disproved_by_end=True,
)
