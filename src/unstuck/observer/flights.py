"""Turns a flight file into a Flight, while the writer runs, hangs, or long after it died. Not injected."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import cast

from unstuck.model import Fetch, Flight, Look, Pace, Phase, Process, Role, Step
from unstuck.observer.gauge import NANO, WORKER, Gauge, one_each, quantile
from unstuck.observer.joint_calls import joint_calls
from unstuck.observer.journals import probes_off, read_records
from unstuck.recorder import layout as at
from unstuck.recorder.records import Record

TICKS = os.sysconf("SC_CLK_TCK")


def read_flight(gauge: Gauge, alive: bool | None = None) -> Flight:
    w = [int(word) for word in gauge.words[: at.PASSES_END]]
    phase, since = at.present(w)
    fetching = bool(w[at.W_FETCHING])
    position = w[at.W_POSITION] if fetching else at.NONE  # what a batch left behind is not in work
    joint = joint_calls(gauge, w)  # their rows know the steps exactly, also between sampled ones
    return Flight(
        pid=w[at.W_PID],
        began=w[at.W_BEGAN] / NANO,
        started=w[at.W_START_TICKS] / TICKS,
        read_at=monotonic(),
        role=_role(w),
        worker=_some(w[at.W_WORKER]),
        rank=_some(w[at.W_RANK]),
        phase=cast("Phase", _name(at.PHASES, phase)),
        since=since / NANO,
        step=max([at.steps_made(w), *(call.step for call in joint.get("collectives", ())[-1:])]),
        batch_bytes=w[at.W_BATCH_BYTES],
        epoch=w[at.W_EPOCH] + (w[at.W_LOADERS] > 0 and at.steps_made(w) > w[at.W_PASS_STEP]),
        batch=w[at.W_BATCH],
        progress=gauge.progress,
        fetching=fetching,
        collating=position == at.COLLATING,
        loaders=w[at.W_LOADERS],
        sample=_some(w[at.W_SAMPLE]) if fetching else None,
        sample_key=gauge.text(w[at.W_KEY_LENGTH], at.KEY_AT, at.KEY_SIZE) if fetching else "",
        position=position if position >= 0 else None,
        sample_since=w[at.W_SAMPLE_SINCE] / NANO,
        attempts=w[at.W_ATTEMPTS] if w[at.W_ATTEMPTS_AT] == at.place_of(w) else 0,
        attempt_target=gauge.text(w[at.W_TARGET_LENGTH], at.TARGET_AT, at.TARGET_SIZE),
        sleeps=w[at.W_SLEEPS],
        forked=bool(w[at.W_FORKED]),
        ended=bool(w[at.W_ENDED]),
        paces={kind: _pace(w, number) for number, kind in enumerate(at.KINDS)},
        steps=() if _is_worker(w) else _steps(w),
        fetches=_fetches(w) if _is_worker(w) else (),
        alive=gauge.alive() if alive is None else alive,
        probes_off=probes_off(gauge),
        **joint,
    )


def read_folder(folder: str | os.PathLike[str]) -> tuple[list[Flight], list[Record]]:
    """Everything in a folder of raw flight files, after all else is gone."""
    flights: list[Flight] = []
    records: list[Record] = []
    paths = sorted(Path(folder).glob("*" + at.FLIGHT))
    gauges = [gauge for path in paths if (gauge := Gauge.open(str(path))) is not None]
    last = {gauge.key: gauge for gauge in sorted(gauges, key=lambda gauge: gauge.number)}
    for gauge in one_each(gauges):
        flight = read_flight(gauge)
        flight = flight if last[gauge.key] is gauge else replace(flight, ended=True)  # it went on as another program
        flights.append(with_crash(flight, gauge.sibling(at.SIGNALS)))
    for gauge in gauges:
        records.extend(read_records(gauge))
        gauge.close()
    return flights, sorted(records, key=lambda record: record.at)


def _role(w: list[int]) -> Role:
    written = _name(at.ROLES, w[at.W_ROLE])
    if written != "worker" and (w[at.W_LOADERS] or w[at.W_PROGRESS] > 1):
        written = "rank" if w[at.W_RANK] >= 0 else "main"
    return cast("Role", written)


def _name(names: tuple[str, ...], number: int) -> str:
    return names[number] if 0 <= number < len(names) else names[0]


def _some(word: int) -> int | None:
    return None if word < 0 else word


def _pace(w: list[int], number: int) -> Pace:
    base = at.HISTOGRAMS + number * at.KIND_WORDS
    kind = w[base : base + at.KIND_WORDS]
    longest, total = kind[at.LONGEST] / NANO, kind[at.TOTAL] / NANO
    return Pace(sum(kind[: at.BUCKETS]), quantile(kind, 0.5), quantile(kind, 0.99), longest, total)


def _steps(w: list[int]) -> tuple[Step, ...]:
    """Recent steps: the first ones all, later one in thirty-two unless they are slow."""
    done = w[at.W_RING]
    steps = []
    for number in range(max(0, done - at.RING_STEPS), done):
        first = at.RING + number % at.RING_STEPS * at.STEP_WORDS
        steps.append(step_of(w[first : first + at.STEP_WORDS]))
    return tuple(steps)


def step_of(words: Sequence[int]) -> Step:
    """From the words of the ring."""
    ended, whole, data, backward, optimizer, cpu = (nanoseconds / NANO for nanoseconds in words[:6])
    return Step(ended, whole, data, backward, optimizer, cpu, size=words[6], number=words[7])


def _is_worker(w: list[int]) -> bool:
    return w[at.W_ROLE] == WORKER


def _fetches(w: list[int]) -> tuple[Fetch, ...]:
    """The last batches that a worker made."""
    done, fetches = w[at.W_RING], []
    for number in range(max(0, done - at.FETCHES_READ), done):
        first = at.RING + number % at.RING_STEPS * at.STEP_WORDS
        ended, took, sample, samples, failed = w[first : first + 5]
        fetches.append(Fetch(ended / NANO, took / NANO, _some(sample), samples, bool(failed)))
    return tuple(fetches)


def unseen(flights: Mapping[int, Flight], root: int) -> Look:
    """What stands for a look where Ctrl-C came before there was one: the processes, and that nothing is known."""
    now = max((flight.read_at for flight in flights.values()), default=0.0)
    processes = tuple(
        Process(
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
        for flight in flights.values()
    )
    return Look(at=now, processes=processes, stacks=True)


def with_crash(flight: Flight, signals: str) -> Flight:
    """The flight of a dead process, with the crash that its file `signals` describes."""
    if flight.alive or flight.ended:
        return flight
    from unstuck.observer.signal_stacks import parse_crash
    from unstuck.observer.source import Source

    try:
        with open(signals, errors="replace") as file:
            crash = parse_crash(file.read())
    except OSError:
        return flight
    if crash is None:
        return flight
    source = Source()
    threads = tuple(replace(thread, frames=source.annotate(thread.frames)) for thread in crash.threads)
    own = next((thread for thread in threads if crash.thread and thread.tid == crash.thread.tid), None)
    return replace(flight, crash=replace(crash, thread=own, threads=threads))
