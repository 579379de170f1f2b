"""What a process has said: the lines of its journal as typed records, and the fields of a Case they go into."""

from __future__ import annotations

import json
import typing
from collections.abc import Iterable, Iterator
from functools import cache

from unstuck.model import Case
from unstuck.observer.gauge import Gauge
from unstuck.recorder import layout as at
from unstuck.recorder.records import ProbeOff, Record
from unstuck.recorder.records.loops import LoopSnapshot
from unstuck.recorder.records.ranks import CollectiveGroup, CollectiveSite
from unstuck.serial import MisfitError, from_plain

MAX_LOOP_SNAPSHOTS = 24  # a process


@cache
def fields() -> dict[str, tuple[type[Record], str]]:
    """By name of a record's class: the class, and the field of a Case that holds all of them."""
    inner: tuple[type[Record], ...] = (ProbeOff, CollectiveGroup, CollectiveSite)  # these go into a Flight
    known: dict[str, tuple[type[Record], str]] = {kind.__name__: (kind, "") for kind in inner}
    for field, hint in typing.get_type_hints(Case).items():
        kind = next(iter(typing.get_args(hint)), None)
        if isinstance(kind, type) and issubclass(kind, Record):
            known[kind.__name__] = (kind, field)
    return known


def parse(lines: bytes) -> Iterator[Record]:
    """What cannot be read, of another version or cut off, is passed over."""
    known = fields()
    for line in lines.splitlines():
        try:
            raw = json.loads(line)
            yield from_plain(known[raw["record"]][0], raw["data"])
        except (ValueError, KeyError, TypeError, MisfitError):
            continue


def by_field(records: Iterable[Record]) -> dict[str, typing.Any]:
    """Arguments of a Case, each in the order of time."""
    arguments: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda record: record.at):
        arguments.setdefault(fields()[type(record).__name__][1], []).append(record)
    return {field: tuple(of_field) for field, of_field in arguments.items() if field}


def read_records(gauge: Gauge) -> list[Record]:
    """All that the process has said so far; only what is new is read from disk."""
    known = typing.cast("list[Record]", gauge.records)
    new = _bytes(gauge, at.RECORDS, gauge.records_read)
    complete = new[: new.rfind(b"\n") + 1]
    gauge.records_read += len(complete)
    known.extend(parse(complete))
    # Descriptions of loops come for as long as a run lasts: the first and the latest are enough.
    loops = [number for number, record in enumerate(known) if isinstance(record, LoopSnapshot)]
    for number in reversed(loops[MAX_LOOP_SNAPSHOTS // 2 : -MAX_LOOP_SNAPSHOTS // 2]):
        del known[number]
    # What found no room on the disk, or no descriptor; and the records that are the whole each time, as last written.
    unwritten = gauge.text(int(gauge.words[at.W_LAST_LENGTH]), at.LAST_AT, at.LAST_SIZE).encode()
    latest = [_bytes(gauge, suffix) for suffix in (at.LEARNING, at.DATA_STATS)]
    return [*known, *parse(b"\n".join([unwritten, *latest]))]


def probes_off(gauge: Gauge) -> tuple[tuple[str, str], ...]:
    """What it said of its own faults, in its journal or, where that failed, in the flight file itself."""
    off = [(record.probe, record.why) for record in read_records(gauge) if isinstance(record, ProbeOff)]
    for line in gauge.text(int(gauge.words[at.W_OFF_LENGTH]), at.OFF_AT, at.OFF_SIZE).splitlines():
        probe, _, why = line.partition("\t")
        off.append((probe, why))
    return tuple(off)


def _bytes(gauge: Gauge, suffix: str, start: int = 0) -> bytes:
    try:
        with open(gauge.sibling(suffix), "rb") as file:
            file.seek(start)
            return file.read()
    except OSError:
        return b""
