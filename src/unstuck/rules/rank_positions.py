"""Where each rank is: in which collective, elsewhere in its code, or gone. The roll-call of all ranks, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile

from unstuck.model import Case, Collective, Flight, Frame, Look, Process, Stall, Thread
from unstuck.recorder.records.deaths import Died, Raised
from unstuck.rules import rank_words
from unstuck.text import spot

COLLECTIVES = tuple(f"torch/distributed/{name}.py" for name in ("distributed_c10d", "rendezvous", "utils"))
OF_DDP = "_distributed_broadcast_coalesced"  # in the file of its forward pass, too
BACKWARD = ("torch/autograd/graph.py", "torch/autograd/__init__.py")
NOT_OF_PEERS = ("KeyboardInterrupt", "SystemExit")
BEGINS = "multiprocessing/process.py"  # what a forked rank has outside of it is its parent's
MAX_LINES = 6  # of a roll-call: of more groups the smallest are summed up


@dataclass(frozen=True)
class Position:
    """One rank."""

    rank: int
    flight: Flight
    process: Process | None = None
    stall: Stall | None = None
    died: Died | None = None
    call: Collective | None = None  # that it is in; of a dead rank, that it was in

    @property
    def alive(self) -> bool:
        return self.flight.alive

    @property
    def thread(self) -> Thread | None:
        return self.process.main_thread if self.process is not None else None

    @property
    def frames(self) -> tuple[Frame, ...]:
        """Of the user's code, outermost first; of a dead rank the line of its last call."""
        if self.thread is not None:
            own = takewhile(lambda frame: not frame.file.endswith(BEGINS), self.thread.frames)
            return tuple(frame for frame in reversed(tuple(own)) if frame.user)
        return (_frame_of(self.call),) if self.call is not None and self.call.file else ()

    @property
    def frame(self) -> Frame | None:
        """Its line in the user's code."""
        return self.frames[-1] if self.frames else None

    @property
    def last_seen(self) -> Frame | None:
        """The line of the last collective that it called."""
        last = self.flight.collectives[-1] if self.flight.collectives else None
        return _frame_of(last) if last is not None and last.file else None

    @property
    def standing(self) -> float:
        return self.stall.standing if self.stall is not None and not self.stall.excuse else 0.0

    @property
    def gone_at(self) -> float:
        """About when it went; 0 while it lives."""
        if self.alive:
            return 0.0
        calls = [call.left or call.entered for call in self.flight.collectives[-1:]]
        return self.died.at if self.died is not None else max(self.flight.since, *calls, self.flight.began)

    @property
    def error(self) -> str:
        """The exception it died of."""
        return "" if self.died is None else own_error(self.died).type

    @property
    def place(self) -> str:
        frame = self.frame
        return spot(frame.file, frame.line) if frame is not None else "an unknown place"

    @property
    def key(self) -> tuple[object, ...]:
        """What all ranks that are in the same call have in common."""
        call, frame = self.call, self.frame
        if call is not None:
            peer = call.peer if call.kind in ("send", "recv") else None
            return call.group, call.number, call.kind, peer, frame and (frame.file, frame.line)
        return "gone" if not self.alive else "", frame and (frame.file, frame.line)


@dataclass(frozen=True)
class World:
    """All ranks that can be seen."""

    case: Case
    size: int
    positions: dict[int, Position]

    @cached_property
    def unseen(self) -> list[int]:
        """Ranks of the world of which nothing is known: on other machines, or never started."""
        return [rank for rank in range(self.size) if rank not in self.positions]

    @cached_property
    def broken(self) -> bool:
        """The run died; or ranks died in a call while the script above them only waited for their ends, and ended well.
        Not where they were started anew since, as a script does that shrinks its world after a failure."""
        if self.case.outcome != "finished":
            return self.case.outcome == "died"
        lost = [p.died.at for p in self.positions.values() if p.died and p.call and p.error not in NOT_OF_PEERS]
        return bool(lost) and all(p.flight.forming < min(lost) for p in self.positions.values())

    @property
    def living(self) -> Iterator[Position]:
        return (position for position in self.positions.values() if position.alive)

    def together(self) -> list[list[Position]]:
        """Ranks by where they are, the largest group first; those that wait in a call before those that do not."""
        groups: dict[tuple[object, ...], list[Position]] = {}
        for position in self.positions.values():
            groups.setdefault(position.key, []).append(position)
        return sorted(groups.values(), key=lambda group: (group[0].call is None, -len(group), group[0].rank))

    def roll_call(self) -> list[str]:
        """ranks 0–6 wait in all_reduce #412 at train.py:88; rank 7 is at data.py:31"""
        groups = self.together()
        lines = [self._line(group) for group in groups[:MAX_LINES]]
        rest = [position.rank for group in groups[MAX_LINES:] for position in group]
        if rest:
            lines.append(f"{rank_words.ranks(rest)} {rank_words.verb(rest, 'is', 'are')} elsewhere")
        if self.unseen and self.positions:
            lines.append(f"{rank_words.ranks(self.unseen)} cannot be seen from here")
        return lines

    @staticmethod
    def _line(group: list[Position]) -> str:
        first, numbers = group[0], [position.rank for position in group]
        who = rank_words.ranks(numbers)
        if not first.alive and first.call is not None:
            return f"{who} {rank_words.verb(numbers, 'was', 'were')} in {rank_words.named_call(first.call)}"
        if not first.alive:
            how = "ended" if first.flight.ended and first.died is None else "died"
            return f"{who} {rank_words.verb(numbers, 'has', 'have')} {how}"
        if first.call is not None:
            return (
                f"{who} {rank_words.verb(numbers, 'waits', 'wait')} in {rank_words.named_call(first.call, first.frame)}"
            )
        return f"{who} {rank_words.verb(numbers, 'is', 'are')} at {first.place}"


def world_of(case: Case) -> World | None:
    """None where the run has one rank only, or none said that it is one."""
    flights: dict[int, Flight] = {}
    for flight in sorted(case.flights, key=lambda flight: flight.forming or flight.began):
        if flight.rank is not None and flight.world is not None and flight.role != "worker":
            flights[flight.rank] = flight  # a rank that was started anew replaces the one before
    size = max((flight.world or 0 for flight in flights.values()), default=0)
    if size < 2:
        return None
    if all(flight.dumped for flight in flights.values()):  # it knows what ran, and numbers each bucket of DDP
        flights = {rank: replace(flight, collectives=flight.dumped) for rank, flight in flights.items()}
    look = next((look for look in reversed(case.looks) if look.stacks), None)
    processes = {process.pid: process for process in look.processes} if look is not None else {}
    stalls = {stall.pid: stall for stall in case.stalls}
    deaths = {died.pid: died for died in reversed(case.deaths)}
    positions = {
        rank: _position(rank, flight, processes.get(flight.pid), stalls.get(flight.pid), deaths.get(flight.pid), look)
        for rank, flight in sorted(flights.items())
    }
    return World(case, size, positions)


def _position(
    rank: int, flight: Flight, process: Process | None, stall: Stall | None, died: Died | None, look: Look | None
) -> Position:
    current = process if process is not None and look is not None and _is_of_now(flight, look) else None
    call = (
        _call_of(flight, current.main_thread if current is not None else None)
        if flight.alive
        else _last_of(flight, died)
    )
    return Position(rank, flight, current, stall, died, call)


def _is_of_now(flight: Flight, look: Look) -> bool:
    """The look was taken after the rank's last sign of movement; of one that died in a call, during that call."""
    last = flight.collectives[-1] if flight.collectives else None
    if last is not None and not flight.alive and (last.raised or last.left is None):
        return look.at >= last.entered
    moved = max((last.left or last.entered) if last is not None else 0.0, flight.since)
    return look.at >= moved - 0.5


def _call_of(flight: Flight, thread: Thread | None) -> Collective | None:
    last = _latest(flight)
    if last is None:
        return _forming(flight) or _by_stack(thread)
    if last.pending:
        return last if (in_backward(thread) if thread is not None else _in_that_step(flight, last)) else None
    if last.left is None:
        return last
    return last if last.asynchronous and _waits_for_handle(thread) else None


def _latest(flight: Flight) -> Collective | None:
    """The last call that has not returned: torch makes some of them by others. Else the last of all."""
    calls = flight.collectives
    unfinished = (call for call in reversed(calls) if call.left is None and not call.pending)
    return next(unfinished, calls[-1] if calls else None)


def _last_of(flight: Flight, died: Died | None) -> Collective | None:
    """The call in which a rank ended."""
    last = _latest(flight)
    if last is None:
        return None
    if last.pending:
        chain = (died.raised, *died.raised.chain) if died is not None else ()
        backward = any(frame[0].endswith(BACKWARD) for raised in chain for frame in raised.frames)
        return last if backward or (not flight.ended and _in_that_step(flight, last)) else None
    if last.asynchronous and not last.raised:
        return last if _ended_in_handle(flight, died) else None
    return last if last.raised or last.left is None else None


def _ended_in_handle(flight: Flight, died: Died | None) -> bool:
    """It crashed in `work.wait()`; or an error came out of C++ right into the user's code."""
    if flight.crash is not None:
        return any(_waits_for_handle(thread) for thread in flight.crash.threads)
    raised = own_error(died) if died is not None else None
    return raised is not None and raised.type == "RuntimeError" and any(frame[3] for frame in raised.frames[:1])


def own_error(died: Died) -> Raised:
    """Below a launcher of torch's own it is raised again as an exit."""
    raised = died.raised
    return raised.chain[0] if raised.type == "SystemExit" and raised.chain else raised


def _in_that_step(flight: Flight, announced: Collective) -> bool:
    """No step was made since, and no batch was asked for: as far as is known it is in the backward pass."""
    if flight.phase == "backward" or flight.since <= announced.entered:
        return True
    return flight.phase == "between" and flight.step <= announced.step


def _frame_of(call: Collective) -> Frame:
    facts = {"arms": call.arms, "guards": call.guards, "leaves": call.leaves}
    return Frame(call.file, call.line, call.function, user=True, **facts)  # type: ignore[arg-type]


def _forming(flight: Flight) -> Collective | None:
    """It waits for all others to come."""
    return None if flight.formed is not None or not flight.forming else Collective("init_process_group")


def _by_stack(thread: Thread | None) -> Collective | None:
    frame = collective_call(thread) if thread is not None else None
    return None if frame is None else Collective(frame.function.rpartition(".")[2])


def collective_call(thread: Thread) -> Frame | None:
    """The call of torch.distributed that the thread is in."""
    frames = (f for f in thread.frames if f.file.endswith(COLLECTIVES) or f.function.endswith(OF_DDP))
    return next(frames, None)


def in_backward(thread: Thread) -> bool:
    return any(frame.file.endswith(BACKWARD) for frame in thread.frames)


def _waits_for_handle(thread: Thread | None) -> bool:
    """`work.wait()` of a collective that was called with async_op=True: C++, so the user's line is the innermost."""
    top = thread.frames[0] if thread is not None and thread.frames else None
    return top is not None and top.user and ".wait(" in top.code


# --- where ways part -----------------------------------------------------------------------------------------


def parting(one: Position, other: Position) -> tuple[Frame, Frame] | None:
    """The frames of both, in the same function, in which they took different ways; None where they were not seen."""
    for mine, theirs in zip(one.frames, other.frames, strict=False):
        if (mine.file, mine.function) != (theirs.file, theirs.function):
            return None
        if mine.line != theirs.line:
            return mine, theirs
    return None


def own_arm(mine: Frame, theirs: Frame) -> int | None:
    """Line of the outermost `if` that only the first went into; None: there is none."""
    shared = set(theirs.arms)
    return next((line for line, arm in mine.arms if (line, arm) not in shared), None)


def exclude_each_other(mine: Frame, theirs: Frame) -> bool:
    """They are in different arms of one `if`."""
    return any((line, 1 - arm) in theirs.arms for line, arm in mine.arms)


def numbers(positions: Iterable[Position]) -> list[int]:
    return [position.rank for position in positions]
