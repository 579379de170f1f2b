"""What every record is: typed data, with the process it is of and the moment it was written."""

from __future__ import annotations

from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from typing_extensions import dataclass_transform

    T = TypeVar("T")

    @dataclass_transform(kw_only_default=True, frozen_default=True)
    def record(cls: type[T]) -> type[T]: ...
else:
    # Frozen for the type checker only: making a class that checks it at run time takes five times as long, and these
    # are made in the user's process.
    record = dataclass(kw_only=True, eq=False, repr=False)

Site = tuple[str, int, str]
"""File, line and function of a place in the user's code."""


@record
class Record:
    """One thing a process said. `pid` and `at` are put there when it is written."""

    pid: int = 0
    at: float = 0.0


@record
class ProbeOff(Record):
    """A fault of ours: this part of the recorder is off from here on."""

    probe: str
    why: str = ""
