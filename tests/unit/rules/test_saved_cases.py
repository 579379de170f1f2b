"""Every rule, on Cases saved from real runs: no process, no clock, milliseconds."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import FAULTY
from tests.unit.rules.record_cases import CASES
from tests.unit.rules.record_cases import saved_case as case_of
from unstuck.model import Case, Finding, Look, Process, Times
from unstuck.recorder.records import Record
from unstuck.rules import RULES
from unstuck.rules.diagnose import diagnose
from unstuck.rules.hang.deadlock import deadlocked
from unstuck.serial import from_plain, to_plain

NAMES = sorted(path.name.removesuffix(".json.gz") for path in CASES.glob("*.json.gz"))
HANGS = [name for name in NAMES if FAULTY[name].family == "hang"]
LOOPS = [name for name in NAMES if FAULTY[name].family == "loop"]
ENDLESS = [name for name in LOOPS if FAULTY[name].rules[0] in ("endless-epoch", "stop-condition-never-met")]


def without_records(case: Case) -> Case:
    """As if no process had written anything."""
    values = {each.name: getattr(case, each.name) for each in fields(case)}
    written = [
        name for name, each in values.items() if isinstance(each, tuple) and each and isinstance(each[0], Record)
    ]
    nothing: Any = dict.fromkeys(written, ())
    return replace(case, **nothing)


def primary(case: Case) -> Finding | None:
    return next(iter(diagnose(case).findings), None)


def knots() -> list[str]:
    """Cases whose culprit is in a proven deadlock."""
    found = []
    for name in HANGS:
        first = primary(case_of(name))
        if first is not None and first.where.pid in deadlocked(case_of(name)):
            found.append(name)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_the_saved_case_names_the_same_cause(name: str) -> None:
    diagnosis = diagnose(case_of(name))
    assert diagnosis.probes_off == ()
    first = diagnosis.findings[0]
    assert first.rule in FAULTY[name].rules
    assert first.evidence
    assert first.fix.text
    assert 0 < first.confidence <= 1
    if FAULTY[name].family != "death" or first.where.file:
        assert Path(first.where.file or "").name == f"{name}.py"


@pytest.mark.parametrize("name", HANGS)
def test_nothing_is_said_while_it_moves(name: str) -> None:
    assert diagnose(replace(case_of(name), stalls=())).findings == ()


@pytest.mark.parametrize("name", HANGS)
def test_an_excuse_silences_everything(name: str) -> None:
    case = case_of(name)
    excused = tuple(replace(stall, excuse="it is compiling") for stall in case.stalls)
    assert diagnose(replace(case, stalls=excused)).findings == ()


@pytest.mark.parametrize("name", HANGS)
def test_with_default_times_and_one_look_nothing_is_certain(name: str) -> None:
    """One look cannot prove a deadlock, and a few seconds are not long."""
    case = replace(case_of(name), times=Times(), looks=case_of(name).looks[-1:], interrupted=False)
    loud = [f.rule for f in diagnose(case).findings if f.severity == "error"]
    assert loud in ([], ["stale-lock-file"]), "only a lock file of a dead process is certain at a glance"


@pytest.mark.parametrize("name", ENDLESS)
def test_a_run_that_came_to_its_end_was_not_endless(name: str) -> None:
    rules = [f.rule for f in diagnose(replace(case_of(name), outcome="finished")).findings]
    assert not {"endless-epoch", "stop-condition-never-met"} & set(rules)


@pytest.mark.parametrize("name", ENDLESS)
def test_a_loop_described_once_proves_nothing(name: str) -> None:
    case = case_of(name)
    once = replace(case, loop_snapshots=case.loop_snapshots[-1:], stalls=())
    assert "stop-condition-never-met" not in [f.rule for f in diagnose(once).findings]


@pytest.mark.parametrize("name", LOOPS)
def test_without_its_records_nothing_is_said_of_a_loop(name: str) -> None:
    """One that goes round without a step stands still, which is another matter."""
    findings = diagnose(replace(without_records(case_of(name)), flights=(), trends=())).findings
    assert [finding for finding in findings if finding.family != "hang"] == []


@pytest.mark.parametrize("name", knots())
def test_a_proof_needs_no_clock(name: str) -> None:
    """Two looks in which nobody ran are enough with the default times, once it has stood for five seconds."""
    case = case_of(name)
    stood = tuple(replace(stall, standing=6.0, still=0.0) for stall in case.stalls)
    first = primary(replace(case, times=Times(), stalls=stood, interrupted=False))
    assert first is not None
    assert first.rule in FAULTY[name].rules
    assert first.confidence >= 0.9


@pytest.mark.parametrize("name", knots())
def test_a_thread_that_ran_between_the_looks_breaks_the_proof(name: str) -> None:
    case = case_of(name)
    ran = replace(case.looks[-1], processes=tuple(_scheduled(p) for p in case.looks[-1].processes))
    stood = tuple(replace(stall, standing=6.0, still=0.0) for stall in case.stalls)
    moving = replace(case, times=Times(), stalls=stood, looks=(*case.looks[:-1], ran), interrupted=False)
    assert diagnose(moving).findings == ()


def _scheduled(process: Process) -> Process:
    return replace(
        process, threads=tuple(replace(t, switches=t.switches + 3, cpu=t.cpu + 0.1) for t in process.threads)
    )


def test_most_locks_pipes_and_queues_are_proven() -> None:
    proven = {FAULTY[name].rules[0] for name in knots()}
    assert proven >= {
        "file-lock-held",
        "lock-lost-in-fork",
        "lock-never-released",
        "pipe-full",
        "queue-not-drained",
        "waits-for-nobody",
    }


def test_a_case_survives_the_disk() -> None:
    for name in NAMES:
        plain = to_plain(case_of(name))
        assert to_plain(from_plain(Case, plain)) == plain


def test_a_rule_of_ours_that_breaks_does_not_hide_the_others() -> None:
    def breaks(_: Case) -> list[Finding]:
        raise RuntimeError("boom")

    broken = replace(RULES[0], decide=breaks)
    name = next(n for n in NAMES if FAULTY[n].rules[0] == "pipe-full")
    diagnosis = diagnose(case_of(name), (broken, *RULES[1:]))
    assert diagnosis.findings[0].rule == "pipe-full"
    assert diagnosis.probes_off == ((f"rule {broken.name}", "RuntimeError: boom"),)


def test_an_empty_case_is_silent() -> None:
    assert diagnose(Case()).findings == ()
    assert diagnose(Case(looks=(Look(at=1.0, stacks=True),))).findings == ()
