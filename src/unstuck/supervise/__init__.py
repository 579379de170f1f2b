"""The supervisor: starts the training, keeps its clock, looks when it stands still, and says why.

Supervisor ──▶ Watch ──▶ Evidence ──▶ Readings
                   └───▶ Verdicts

Nothing points back. The first is the loop of `run`; `unstuck.watch()` has a loop of its own over the same Watch.
"""

from __future__ import annotations


class Options:
    """What the user wants of a run. Without dataclass machinery: it is imported before the training starts."""

    __slots__ = (
        "detach",
        "fail_on",
        "format",
        "grace",
        "live",
        "on_hang",
        "redact",
        "report",
        "restart",
        "restart_on",
        "stall_after",
        "stop_on",
        "trace_nan",
        "verbose",
    )

    def __init__(
        self,
        on_hang: str = "report",
        stall_after: float | None = None,
        report: str | None = None,
        fail_on: str | None = None,
        detach: bool = False,
        verbose: bool = False,
        grace: float = 30.0,
        stop_on: str | None = None,
        trace_nan: bool = False,
        restart: int = 0,
        restart_on: str = "death",
        redact: bool = False,
        live: bool = False,
        format: str | None = None,
    ) -> None:
        self.on_hang = on_hang
        self.stall_after = stall_after
        self.report = report
        self.fail_on = fail_on
        self.detach = detach
        self.verbose = verbose
        self.grace = grace
        self.stop_on = stop_on
        self.trace_nan = trace_nan
        self.restart = restart
        self.restart_on = restart_on
        self.redact = redact
        self.live = live
        self.format = format
