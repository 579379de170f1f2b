"""Which finding ends a run, and by which option."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from unstuck.model import Finding, Fix, Severity, Where
from unstuck.supervise.options import Options
from unstuck.supervise.run import Supervisor


def finding(family: str, severity: Severity, *, withdrawn: bool = False) -> Finding:
    return Finding(
        rule=f"a-{family}",
        family=family,
        severity=severity,
        confidence=0.9,
        title="It is so",
        evidence=(),
        where=Where("train.py", 3, "main", 77),
        fix=Fix("Mend it."),
        seen_by="flight",
        withdrawn=withdrawn,
    )


class Line:
    """A supervisor whose child lives, with these findings."""

    def __init__(self, options: Options, *findings: Finding) -> None:
        self.said: list[str] = []
        self.gauge: Any = SimpleNamespace(trains=True)
        voice: Any = SimpleNamespace(line=self.said.append)
        folder: Any = SimpleNamespace()
        self.supervisor = Supervisor(("python",), options, folder, voice)
        watch: Any = SimpleNamespace(
            inquired=True,
            inquiry=SimpleNamespace(findings=findings),
            interrupted=False,
            ending=False,
            hangar=SimpleNamespace(gauge_of=lambda _: self.gauge),
        )
        process: Any = SimpleNamespace(poll=lambda: None, pid=2**22 + 1)  # more than any process has
        self.supervisor.watch, self.supervisor.process = watch, process

    def stop(self) -> list[str]:
        self.supervisor._stop_if_asked()
        return self.said


NAN, HANG, LOOP = finding("numerics", "error"), finding("hang", "error"), finding("loop", "error")
ON_HANG, ERROR, WARNING = {"on_hang": "stop"}, {"stop_on": "error"}, {"stop_on": "warning"}


@pytest.mark.parametrize(
    ("asked", "found", "by"),
    [
        ({}, NAN, ""),
        ({}, HANG, ""),
        (ON_HANG, HANG, "--on-hang stop"),
        (ON_HANG, LOOP, "--on-hang stop"),
        (ON_HANG, NAN, ""),
        (ON_HANG, finding("learning", "error"), ""),
        (ERROR, NAN, "--stop-on error"),
        (ERROR, finding("learning", "error"), "--stop-on error"),
        (ERROR, HANG, "--stop-on error"),
        (ERROR, LOOP, "--stop-on error"),
        (ERROR, finding("numerics", "warning"), ""),
        (ERROR, finding("numerics", "error", withdrawn=True), ""),
        (WARNING, finding("learning", "warning"), "--stop-on warning"),
        (WARNING, NAN, "--stop-on warning"),
        (WARNING, finding("learning", "info"), ""),
        (WARNING, finding("hang", "warning"), ""),
        ({**ON_HANG, **ERROR}, NAN, "--stop-on error"),
        ({**ON_HANG, **ERROR}, HANG, "--on-hang stop"),
    ],
)
def test_who_stops_what(asked: dict[str, str], found: Finding, by: str) -> None:
    assert Line(Options(**asked), found).stop() == ([f"stopping the run ({by})"] if by else [])  # type: ignore[arg-type]


def test_it_is_stopped_once_and_the_cause_is_the_one_that_did() -> None:
    line = Line(Options(on_hang="stop"), NAN, HANG)
    line.stop()
    line.stop()
    line.supervisor._sum_up()
    assert line.said == ["stopping the run (--on-hang stop)", "stopped, because It is so (train.py:3) [a-hang]"]


def test_what_is_ending_is_left_alone() -> None:
    ended, told_to, dead = (Line(Options(stop_on="error"), NAN) for _ in range(3))
    ended.gauge.trains = False
    told_to.supervisor.watch.interrupted = True
    dead.supervisor.process.poll = lambda: 0  # type: ignore[method-assign]
    assert [each.stop() for each in (ended, told_to, dead)] == [[], [], []]
    stuck = Line(Options(stop_on="error"), HANG)
    stuck.gauge.trains = False  # at its end, in a wait that does not end
    assert stuck.stop()
