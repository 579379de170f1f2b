"""What is left of processes that are gone: the crash they told of, or nothing but that they were there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from unstuck.model import Crash, Flight, Look, Process


def unseen(flights: Mapping[int, Flight], root: int) -> Look:
    """What stands for a look where Ctrl-C came before there was one: the processes, and that nothing is known."""
    now = max((flight.read_at for flight in flights.values()), default=0.0)
    return Look(at=now, processes=tuple(_process(flight, root) for flight in flights.values()), stacks=True)


def _process(flight: Flight, root: int) -> Process:
    return Process(
        pid=flight.pid,
        ppid=0 if flight.pid == root else root,
        role=flight.role,
        is_python=True,
        forked=flight.forked,
        worker=flight.worker,
        rank=flight.rank,
        stacks_missing="it was gone before anything could be read",
        recorded=True,
    )


def with_crash(flight: Flight, signals: str) -> Flight:
    """The flight of a dead process, with the crash of which its file `signals` tells."""
    if flight.alive or flight.ended:
        return flight
    from unstuck.observer.signal_stacks import parse_crash

    try:
        with open(signals, errors="replace") as file:
            crash = parse_crash(file.read())
    except OSError:
        return flight
    return replace(flight, crash=_annotated(crash)) if crash is not None else flight


def _annotated(crash: Crash) -> Crash:
    from unstuck.observer.source import Source

    source = Source()
    threads = tuple(replace(t, frames=source.annotate(t.frames)) for t in crash.threads)
    own = next((t for t in threads if crash.thread is not None and t.tid == crash.thread.tid), None)
    return replace(crash, thread=own, threads=threads)
