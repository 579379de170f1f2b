"""The supervisor: starts the training, keeps its clock, looks when it stands still, and says why.

Supervisor ──▶ Watch ──▶ Evidence ──▶ Readings
                   └───▶ Verdicts

Nothing points back. The first is the loop of `run`; `unstuck.watch()` has a loop of its own over the same Watch.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Options:
    """What the user wants of a run. Without dataclass machinery: it is imported before the training starts."""

    on_hang: str = "report"
    stall_after: float | None = None
    report: str | None = None
    fail_on: str | None = None
    detach: bool = False
    verbose: bool = False
    grace: float = 30.0
    stop_on: str | None = None
    trace_nan: bool = False
    restart: int = 0
    restart_on: str = "death"
    redact: bool = False
    live: bool = False
    format: str | None = None

    def __init__(self, **wanted: Any) -> None:
        self.__dict__.update(wanted)
