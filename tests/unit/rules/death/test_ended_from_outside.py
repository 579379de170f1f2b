"""ended-from-outside, on Cases made by hand."""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest

from tests.unit.rules.death.runs import said
from unstuck.model import Case, Exit, Flight, Sender
from unstuck.rules import death
from unstuck.rules.diagnose import diagnose


def ended(sender: Sender, exit_: Exit) -> Case:
    return Case(outcome="interrupted", root=5, exits=(exit_,), senders=(sender,), flights=(Flight(5, role="main"),))


def test_a_scheduler_is_named_and_a_person_at_the_terminal_is_information() -> None:
    killed = Exit(5, signal=signal.SIGTERM)
    parent = Sender(signal.SIGTERM, pid=3, command="slurmstepd: [17.0]", ancestor=True)
    person = Sender(signal.SIGTERM, pid=9, command="kill 5", terminal=True)
    assert said(ended(parent, killed)) == [("ended-from-outside", "error")]
    assert said(ended(person, killed)) == [("ended-from-outside", "info")]


def test_a_run_that_handled_the_signal_is_information() -> None:
    assert said(ended(Sender(signal.SIGTERM, pid=3), Exit(5, code=1))) == [("ended-from-outside", "info")]


def test_ctrl_c_is_not_from_outside() -> None:
    assert said(ended(Sender(signal.SIGINT, pid=3), Exit(5, signal=signal.SIGINT))) == []


def test_the_end_time_of_a_job_is_told() -> None:
    late = replace(
        ended(Sender(signal.SIGTERM, pid=3, at=1000.0), Exit(5, signal=signal.SIGTERM)),
        machine={"scheduler": {"name": "Slurm", "job": "17", "ends": 1030}},
    )
    finding = diagnose(late, death.RULES).findings[0]
    assert any("30 s before its end time" in line for line in finding.evidence)
    assert "longer time limit" in finding.fix.text


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_sent_to_the_training_itself(number: signal.Signals) -> None:
    case = Case(outcome="died", root=5, exits=(Exit(5, signal=number),), flights=(Flight(5, role="main", step=7),))
    finding = diagnose(case, death.RULES).findings[0]
    assert (finding.rule, finding.where.step) == ("ended-from-outside", 7)
    assert number.name in finding.title
