"""The rules of the family `death` on saved Cases: silent where nothing died, and never judging by a message's text."""

from __future__ import annotations

import signal
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.rules.record_cases import CASES, EXPECTED, case_file, saved_case
from unstuck.model import Case, Exit, Flight, Sender
from unstuck.recorder.records.deaths import BatchFailed, Died, Raised, SampleFailed, SampleInWork, WorkerExit
from unstuck.rules import death
from unstuck.rules.diagnose import diagnose
from unstuck.serial import from_plain, to_plain

MEMORY = ("out-of-memory-kill", "memory-leak-in-loop", "cuda-out-of-memory")
NAMES = sorted(
    name
    for name, facts in EXPECTED.items()
    if facts["family"] == "death" and facts["rules"][0] not in MEMORY and case_file(name).exists()
)
BY_ERROR = [name for name in NAMES if EXPECTED[name]["rules"][0] != "ended-from-outside"]


def said(case: Case) -> list[tuple[str, str]]:
    return [(f.rule, f.severity) for f in diagnose(case, death.RULES).findings if f.rule not in MEMORY]


def rule_of(name: str) -> list[tuple[str, str]]:
    return [(EXPECTED[name]["rules"][0], "error")]


@pytest.mark.parametrize("name", NAMES)
def test_one_cause_and_no_second(name: str) -> None:
    assert said(saved_case(name)) == rule_of(name)


@pytest.mark.parametrize("name", BY_ERROR)
def test_a_run_that_came_to_a_good_end_did_not_die(name: str) -> None:
    for outcome in ("finished", "interrupted"):
        assert said(replace(saved_case(name), outcome=outcome, stalls=(), senders=())) == []


@pytest.mark.parametrize("name", BY_ERROR)
def test_ctrl_c_is_no_death(name: str) -> None:
    case = saved_case(name)
    root = case.root or 0
    assert said(replace(case, exits=(Exit(root, signal=signal.SIGINT),))) == []
    assert said(replace(case, exits=(Exit(root, code=130),))) == []


@pytest.mark.parametrize("name", BY_ERROR)
def test_the_text_of_a_message_decides_nothing(name: str) -> None:
    """Messages are only ever compared with each other, to see that two records speak of one exception."""
    assert said(from_plain(Case, _muted(to_plain(saved_case(name))))) == rule_of(name)


@pytest.mark.parametrize("name", BY_ERROR)
def test_flight_files_alone_tell_the_same(name: str) -> None:
    """`unstuck report` of bare flight files knows neither the exit status nor, by number, the root."""
    assert said(replace(saved_case(name), exits=(), looks=())) == rule_of(name)


def _muted(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: "x" * len(value) if key == "message" else _muted(value) for key, value in data.items()}
    return [_muted(each) for each in data] if isinstance(data, list) else data


def test_a_worker_without_descriptors_may_leave_main_waiting() -> None:
    case = saved_case("handles-never-closed-standing", CASES.parent / "more")
    first = diagnose(case).findings[0]
    assert first.rule == "too-many-open-files"
    assert "254 of 256" in first.title
    assert any(line.startswith("waits-for-nobody") for line in first.consequences)


# --- signals from outside ------------------------------------------------------------------------------------


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


# --- exits that were meant -----------------------------------------------------------------------------------


def test_an_exit_code_of_the_script_itself_is_no_finding() -> None:
    assert said(Case(outcome="died", root=5, exits=(Exit(5, code=2),), flights=(Flight(5, role="main"),))) == []


def died(pid: int, at: float, kind: str, *frames: tuple[str, int, str, bool]) -> Died:
    return Died(pid=pid, at=at, raised=Raised(type=kind, frames=list(frames)))


def test_an_exception_of_a_helper_is_not_that_of_the_run() -> None:
    helper = died(6, 1.0, "ValueError", ("/a/h.py", 3, "f", True))
    root = died(5, 2.0, "KeyError", ("/a/t.py", 9, "main", True))
    flights = (Flight(5, role="main"), Flight(6, role="helper"))
    case = Case(outcome="died", root=5, exits=(Exit(5, code=1),), flights=flights, deaths=(helper, root))
    finding = diagnose(case, death.RULES).findings[0]
    assert (finding.where.file, finding.where.line) == ("/a/t.py", 9)


def test_below_a_launcher_the_first_rank_counts() -> None:
    run = "/venv/lib/python3.11/site-packages/torch/distributed/run.py"
    launcher = died(5, 9.0, "ChildFailedError", (run, 1, "run", False))
    second = died(7, 8.0, "RuntimeError", ("/a/t.py", 30, "m", True))
    first = died(6, 7.0, "ValueError", ("/a/t.py", 20, "m", True))
    flights = (Flight(5, role="launcher"), Flight(6, role="rank", rank=0), Flight(7, role="rank", rank=1))
    deaths = (first, second, launcher)
    case = Case(outcome="died", root=5, exits=(Exit(5, code=1),), flights=flights, deaths=deaths)
    finding = diagnose(case, death.RULES).findings[0]
    assert (finding.rule, finding.where.rank, finding.where.line) == ("uncaught-exception", 0, 20)


def test_an_error_that_the_script_caught_before_it_left_is_named_with_less_confidence() -> None:
    raised = Raised(type="ValueError", message="bad", frames=[("/a/t.py", 4, "Rows.__getitem__", True)])
    sample = SampleFailed(pid=6, at=1.0, raised=raised, in_work=SampleInWork(worker=0, sample=12))
    caught = Raised(type="ValueError", message="Caught")
    batch = BatchFailed(pid=5, at=1.1, raised=caught, worker=0, step=7, workers=[WorkerExit(worker=0, pid=6)])
    flights = (Flight(5, role="main", step=7), Flight(6, role="worker", worker=0))
    case = Case(
        outcome="died",
        root=5,
        exits=(Exit(5, code=1),),
        flights=flights,
        samples_failed=(sample,),
        batches_failed=(batch,),
    )
    finding = diagnose(case, death.RULES).findings[0]
    assert (finding.rule, finding.where.sample, finding.confidence) == ("sample-raises", 12, 0.8)
    went_on = (Flight(5, role="main", step=90), flights[1])
    assert said(replace(case, flights=went_on)) == []
