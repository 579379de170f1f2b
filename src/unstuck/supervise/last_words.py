"""What the processes wrote at Ctrl-C or in a crash, put where a look would have put it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from unstuck.model import Crash, Flight, Look, Process, Thread
from unstuck.record import layout as at
from unstuck.record.gauge import Gauge
from unstuck.supervise.hangar import Hangar


def last_look(looks: list[Look], flights: Mapping[int, Flight], hangar: Hangar, root: int, since: float) -> list[Look]:
    """The looks taken since the standstill began; where none has stacks, one made of the stacks left behind."""
    looks = [look for look in looks if look.at >= since]
    if any(look.stacks for look in looks):
        return looks
    processes = [_process(flight, hangar, root) for flight in flights.values()]
    now = max((flight.read_at for flight in flights.values()), default=0.0)
    return [*looks, Look(at=now, processes=tuple(processes), stacks=True)]


def _process(flight: Flight, hangar: Hangar, root: int) -> Process:
    threads = _stacks(hangar.gauge_of(flight.pid))
    return Process(
        pid=flight.pid,
        ppid=0 if flight.pid == root else root,
        role=flight.role,
        is_python=True,
        forked=flight.forked,
        worker=flight.worker,
        rank=flight.rank,
        threads=threads,
        stacks_by="faulthandler" if threads else "",
        stacks_missing="" if threads else "it was gone before anything could be read",
        recorded=True,
    )


def _stacks(gauge: Gauge | None) -> tuple[Thread, ...]:
    from unstuck.observe.signal_stacks import parse_faulthandler
    from unstuck.observe.source import with_source

    if gauge is None:
        return ()
    try:
        with open(gauge.beside(at.SIGNALS), errors="replace") as file:
            text = file.read()
    except OSError:
        return ()
    threads = parse_faulthandler(text)
    return tuple(replace(t, frames=tuple(with_source(f) for f in t.frames)) for t in threads)


def with_crash(flight: Flight, signals: str) -> Flight:
    """The flight of a dead process, with the crash of which its file `signals` tells."""
    if flight.alive or flight.ended:
        return flight
    from unstuck.observe.signal_stacks import parse_crash

    try:
        with open(signals, errors="replace") as file:
            crash = parse_crash(file.read())
    except OSError:
        return flight
    return replace(flight, crash=_annotated(crash)) if crash is not None else flight


def _annotated(crash: Crash) -> Crash:
    from unstuck.observe.source import Source

    source = Source()
    threads = tuple(replace(t, frames=source.annotate(t.frames)) for t in crash.threads)
    own = next((t for t in threads if crash.thread is not None and t.tid == crash.thread.tid), None)
    return replace(crash, thread=own, threads=threads)
