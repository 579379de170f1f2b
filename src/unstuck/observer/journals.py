"""Lines of a process's journal as typed records, and the fields of a Case they go into."""

from __future__ import annotations

import json
import typing
from collections.abc import Iterable, Iterator
from functools import cache

from unstuck.model import Case
from unstuck.recorder.records import ProbeOff, Record
from unstuck.serial import MisfitError, from_plain


@cache
def fields() -> dict[str, tuple[type[Record], str]]:
    """By name of a record's class: the class, and the field of a Case that holds all of them."""
    found: dict[str, tuple[type[Record], str]] = {"ProbeOff": (ProbeOff, "")}
    for field, hint in typing.get_type_hints(Case).items():
        kind = next(iter(typing.get_args(hint)), None)
        if isinstance(kind, type) and issubclass(kind, Record):
            found[kind.__name__] = (kind, field)
    return found


def parse(lines: bytes) -> Iterator[Record]:
    """What cannot be read, of another version or cut off, is passed over."""
    known = fields()
    for line in lines.splitlines():
        try:
            raw = json.loads(line)
            kind = known[raw["record"]][0]
            yield from_plain(kind, raw["data"])
        except (ValueError, KeyError, TypeError, MisfitError):
            continue


def by_field(records: Iterable[Record]) -> dict[str, typing.Any]:
    """Arguments of a Case, each in the order of time."""
    known = fields()
    found: dict[str, list[Record]] = {}
    for record in records:
        field = known[type(record).__name__][1]
        if field:
            found.setdefault(field, []).append(record)
    return {field: tuple(sorted(each, key=lambda record: record.at)) for field, each in found.items()}
