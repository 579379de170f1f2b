"""world-never-formed: ranks wait in `init_process_group` for others that never come.

What it sees
    Processes called `init_process_group` and it has not returned, or it failed: the world they want has more ranks than
    came, two of them have the same number, they were sent to different addresses, or to one that does not work.

Why it matters
    Nothing begins until the last rank is there. The wait ends with the timeout of the store, after minutes.

Evidence
    How many ranks there are to be, which came, which are missing, at which address each of them waits, since when; and
    what a process died of before it came.

Fix
    Start as many ranks as WORLD_SIZE says, each with its own RANK, all with the same MASTER_ADDR and MASTER_PORT.

When it is wrong
    Ranks that are started by hand or by a scheduler, one after another. Reported at once only where they meet on this
    machine and whoever started them is done, or where `init_process_group` failed; else after the time of any other
    standstill, or at Ctrl-C.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from unstuck.model import Case, Finding, Flight, Stall, Where
from unstuck.recorder.records.deaths import Died
from unstuck.recorder.records.ranks import WorldJoined
from unstuck.rules import rank_words
from unstuck.rules.rank_positions import own_error
from unstuck.rules.rule import Rule
from unstuck.text import count, seconds, spot

LOCAL = ("127.", "localhost", "::1", "[::1]", "/")  # an address that only this machine can reach
STARTS_NOBODY = ("child", "poll", "pipe-read", "socket")  # what a launcher that has started all waits for
NOT_MET = frozenset(("DistNetworkError", "DistStoreError", "DistBackendError", "RuntimeError", "TimeoutError"))
"""How init_process_group fails where ranks do not meet; other errors are about its arguments."""


class Forming(NamedTuple):
    """Ranks that came, and met nobody."""

    case: Case
    ranks: list[Flight]  # the first to come first
    asked: dict[int, WorldJoined]
    failed: Died | None  # the first that gave up

    @property
    def first(self) -> Flight:
        return self.ranks[0]

    @property
    def numbers(self) -> list[int]:
        return [flight.rank or 0 for flight in self.ranks]

    @property
    def stalls(self) -> list[Stall]:
        pids = {flight.pid for flight in self.ranks}
        return [stall for stall in self.case.stalls if stall.pid in pids]

    @property
    def standing(self) -> float:
        return max((s.standing for s in self.stalls if s.pid == self.first.pid and not s.excuse), default=0.0)

    @property
    def address(self) -> str:
        return self.asked[self.first.pid].address


class Reason(NamedTuple):
    title: str
    evidence: str
    fix: str
    certain: bool = True  # nobody can come any more


def decide(case: Case) -> Iterable[Finding]:
    forming = _forming(case)
    reason = _reason(forming) if forming is not None else None
    if forming is None or reason is None or not _counts(forming, reason):
        return
    lost = _lost(forming)
    if lost is not None and case.outcome == "died":
        return  # that death has a finding of its own
    file, line, function = (lost or forming.asked[forming.first.pid]).site or (None, None, None)
    who = f"{rank_words.ranks(forming.numbers)} {rank_words.verb(forming.numbers, 'waits', 'wait')}"
    yield RULE.finding(
        severity="error",
        confidence=0.9,
        title=reason.title,
        evidence=(
            f"{who} in init_process_group for {seconds(forming.standing)}" if forming.standing else "",
            reason.evidence,
            lost.words if lost is not None else "",
            _failure(forming.failed),
            *_addresses(forming),
        ),
        where=Where(file, line, function, pid=forming.first.pid, rank=forming.first.rank),
        fix=reason.fix,
    )


def _forming(case: Case) -> Forming | None:
    latest = max((joined.restart for joined in case.worlds_joined), default=0)
    asked = {joined.pid: joined for joined in case.worlds_joined if joined.restart == latest}
    ranks = [f for f in case.flights if f.pid in asked and f.forming and f.formed is None and f.role != "worker"]
    pids = {flight.pid for flight in ranks}
    failed = min((d for d in case.deaths if d.pid in pids and _gave_up(d)), key=lambda died: died.at, default=None)
    if case.outcome != "died" or failed is None:
        ranks = [flight for flight in ranks if flight.alive]
    if not ranks or case.outcome == "finished":
        return None
    return Forming(case, sorted(ranks, key=lambda flight: flight.forming), asked, failed)


def _gave_up(died: Died) -> bool:
    chain = (died.raised, *died.raised.chain)
    return any(r.type in NOT_MET and any(f[2] == "init_process_group" for f in r.frames) for r in chain)


def _reason(forming: Forming) -> Reason | None:
    """None where nothing is wrong but the time."""
    asked, ranks = forming.asked, forming.ranks
    world = max((flight.world or 0 for flight in ranks), default=0)
    living = {flight.pid for flight in forming.case.flights if flight.alive} | {flight.pid for flight in ranks}
    came = Counter(joined.rank for joined in asked.values() if joined.rank is not None and joined.pid in living)
    twice = [rank for rank, times in came.items() if times > 1]
    sizes = sorted({flight.world or 0 for flight in ranks})
    if twice:
        said = f"{rank_words.ranks(twice)} came more than once"
        return Reason(f"{said}, so the world of {world} never forms", said, "Give every process its own RANK.")
    if len(sizes) > 1:
        said = f"the ranks expect worlds of {', '.join(map(str, sizes))}"
        return Reason(f"{said}: none of them forms", said, "Give every process the same world size.")
    if len({asked[flight.pid].address for flight in ranks}) > 1:
        return Reason(
            "the ranks wait for each other at different addresses",
            "",
            "Give every rank the same MASTER_ADDR and MASTER_PORT (or init_method).",
        )
    missing = [rank for rank in range(world) if rank not in came]
    if missing:
        return Reason(
            f"the world of {count(world, 'rank')} never forms: {rank_words.ranks(missing)} did not come",
            f"{len(came)} of {world} ranks called init_process_group; {rank_words.ranks(missing)} did not",
            f"Start {count(world, 'rank')}, or set WORLD_SIZE (world_size) to the number that is started.",
        )
    gave_up = [f.rank or 0 for f in ranks if forming.failed is not None and f.pid == forming.failed.pid]
    met = f"{rank_words.ranks(gave_up)} could not meet the others" if gave_up else "all ranks came, but did not meet"
    return Reason(
        f"{met} at {forming.address or 'their store'}",
        f"all {world} ranks called init_process_group",
        "Give MASTER_ADDR and MASTER_PORT (or init_method) an address of rank 0 that every rank can reach, and a port "
        "that nobody else uses.",
        certain=False,
    )


def _counts(forming: Forming, reason: Reason) -> bool:
    """Nobody can come any more; or it has failed or lasted long, or a person asks."""
    case, times = forming.case, forming.case.times
    stall = next((stall for stall in forming.stalls if stall.pid == forming.first.pid), None)
    if forming.failed is not None or (stall is not None and stall.suspect and (case.interrupted or case.asked)):
        return True
    if reason.certain and forming.address.startswith(LOCAL):
        return forming.standing >= max(times.proven, times.suspect) and _all_started(case)
    stood = [not stall.excuse and stall.lasts(times.silent) for stall in forming.stalls]  # a slow import is at work
    return bool(stood) and all(stood) and _all_started(case)


class _Lost(NamedTuple):
    words: str
    site: tuple[str, int, str]


def _lost(forming: Forming) -> _Lost | None:
    """What a process died of before it came."""
    workers = {pid for started in forming.case.workers_started for pid in started.pids}
    for died in forming.case.deaths:
        raised = own_error(died)
        frame = next((frame for frame in raised.frames if frame[3]), None)
        if died.pid not in forming.asked and died.pid not in workers and died.pid != forming.case.root and frame:
            words = f"pid {died.pid} died of {raised.type} at {spot(frame[0], frame[1])} before it came"
            return _Lost(words, (frame[0], frame[1], frame[2]))
    return None


def _failure(failed: Died | None) -> str:
    if failed is None:
        return ""
    raised = next(r for r in (failed.raised, *failed.raised.chain) if r.type in NOT_MET)
    return f"`{raised.type}: {raised.message[:160]}`"


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


def _addresses(forming: Forming) -> list[str]:
    at: dict[str, list[int]] = {}
    for flight in forming.ranks:
        at.setdefault(forming.asked[flight.pid].address or "a store of their own", []).append(flight.rank or 0)
    return [f"{rank_words.ranks(ranks)}: {address}" for address, ranks in list(at.items())[:4]]


RULE = Rule(
    "world-never-formed",
    "ranks",
    decide,
    explains=frozenset(("waits-on-rank", "progress-unknown", "waits-on-io", "waits-for-nobody", "uncaught-exception")),
    disproved_by_end=True,
)
