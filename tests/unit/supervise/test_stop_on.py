"""Which finding ends a run, and by which option."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.supervise.findings import finding
from unstuck.model import Finding
from unstuck.supervise import Options
from unstuck.supervise.supervisor import Supervisor
from unstuck.supervise.verdicts import Verdict, Verdicts

NAN, HANG, LOOP = finding("numerics"), finding("hang"), finding("loop")
ON_HANG, ERROR, WARNING = {"on_hang": "stop"}, {"stop_on": "error"}, {"stop_on": "warning"}


def said(*findings: Finding) -> Verdicts:
    verdicts = Verdicts()
    verdicts.all = [Verdict(finding, 0.0) for finding in findings]
    return verdicts


@pytest.mark.parametrize(
    ("options", "found", "by"),
    [
        ({}, NAN, ""),
        ({}, HANG, ""),
        (ON_HANG, HANG, "--on-hang stop"),
        (ON_HANG, LOOP, "--on-hang stop"),
        (ON_HANG, NAN, ""),
        (ON_HANG, finding("learning"), ""),
        (ERROR, NAN, "--stop-on error"),
        (ERROR, finding("learning"), "--stop-on error"),
        (ERROR, HANG, "--stop-on error"),
        (ERROR, LOOP, "--stop-on error"),
        (ERROR, finding("numerics", "warning"), ""),
        (ERROR, finding("numerics", withdrawn=True), ""),
        (WARNING, finding("learning", "warning"), "--stop-on warning"),
        (WARNING, NAN, "--stop-on warning"),
        (WARNING, finding("learning", "info"), ""),
        (WARNING, finding("hang", "warning"), ""),
        ({**ON_HANG, **ERROR}, NAN, "--stop-on error"),
        ({**ON_HANG, **ERROR}, HANG, "--on-hang stop"),
    ],
)
def test_who_stops_what(options: dict[str, str], found: Finding, by: str) -> None:
    reason = said(found).reason_to_stop(Options(**options))
    assert reason == ((by, found) if by else None)


@pytest.mark.parametrize(
    ("fail_on", "found", "failed"),
    [
        (None, HANG, False),
        ("error", HANG, True),
        ("error", finding("pace", "warning"), False),
        ("warning", finding("pace", "warning"), True),
        ("warning", HANG, True),
        ("warning", finding("hang", withdrawn=True), False),
    ],
)
def test_which_finding_fails_a_run_that_ended_well(fail_on: str | None, found: Finding, failed: bool) -> None:
    assert said(found).fails(fail_on) is failed


class Line:
    """A supervisor whose child lives, with these findings."""

    def __init__(self, options: Options, *findings: Finding) -> None:
        self.lines: list[str] = []
        self.gauge: Any = SimpleNamespace(trains=True)
        output: Any = SimpleNamespace(line=self.lines.append)
        folder: Any = SimpleNamespace()
        self.supervisor = Supervisor(("python",), options, folder, output)
        flights = SimpleNamespace(gauge_of=lambda _: self.gauge)
        watch: Any = SimpleNamespace(
            verdicts=said(*findings), interrupted=False, ending=False, readings=SimpleNamespace(flights=flights)
        )
        process: Any = SimpleNamespace(poll=lambda: None, pid=2**22 + 1)  # more than any process has
        self.supervisor.watch, self.supervisor.process = watch, process

    def stop(self) -> list[str]:
        self.supervisor._stop_if_wanted()
        return self.lines


def test_it_is_stopped_once_and_the_cause_is_the_one_that_did() -> None:
    line = Line(Options(on_hang="stop"), NAN, HANG)
    line.stop()
    line.stop()
    line.supervisor._sum_up()
    assert line.lines == ["stopping the run (--on-hang stop)", "stopped the run: It is so (train.py:3) [a-hang]"]


def test_what_is_ending_is_left_alone() -> None:
    ended, interrupted, dead = (Line(Options(stop_on="error"), NAN) for _ in range(3))
    ended.gauge.trains = False
    interrupted.supervisor.watch.interrupted = True  # type: ignore[misc]
    dead.supervisor.process.poll = lambda: 0  # type: ignore[method-assign]
    assert [line.stop() for line in (ended, interrupted, dead)] == [[], [], []]
    stuck = Line(Options(stop_on="error"), HANG)
    stuck.gauge.trains = False  # at its end, in a wait that does not end
    assert stuck.stop()
