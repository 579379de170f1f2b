"""What a finding says follows from its own evidence, on every saved Case."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.unit.rules.record_cases import saved_case as case_of
from tests.unit.rules.test_saved_cases import HANGS
from unstuck.model import Case, Finding, Thread
from unstuck.rules.diagnose import diagnose

WRITES = re.compile(r"\binside (p?write|send|fsync|fdatasync|sync)\w*")


def findings() -> list[tuple[str, Case, Finding]]:
    cases = {name: case_of(name) for name in HANGS}
    return [(name, case, one) for name, case in cases.items() for one in diagnose(case).findings if one.rule]


ALL = [pytest.param(case, finding, id=f"{name}-{finding.rule}") for name, case, finding in findings()]


def threads_at(case: Case, finding: Finding) -> list[Thread]:
    """The threads that the finding may speak of: of its process, with its line on the stack."""
    look = next(look for look in reversed(case.looks) if look.stacks)
    process = look.process(finding.where.pid or 0)
    own = process.threads if process else ()
    return [t for t in own if any((f.file, f.line) == (finding.where.file, finding.where.line) for f in t.frames)]


@pytest.mark.parametrize(("case", "finding"), ALL)
def test_nothing_arrives_is_not_said_of_one_that_writes(case: Case, finding: Finding) -> None:
    if "nothing arrives" in finding.title:
        assert not any(WRITES.search(line) for line in finding.evidence)
        assert not any(t.wait and t.wait.kind == "pipe-write" for t in threads_at(case, finding))


@pytest.mark.parametrize("finding", [parameters.values[1] for parameters in ALL])
def test_one_that_waits_does_not_compute(finding: Finding) -> None:
    computes = any("it computes, it does not wait" in line for line in finding.evidence)
    assert not (computes and ("is waiting" in finding.title or "is stuck writing" in finding.title))
    assert not ("computes" in finding.title and not computes)


@pytest.mark.parametrize(("case", "finding"), ALL)
def test_nothing_moved_is_not_said_while_something_computes(case: Case, finding: Finding) -> None:
    if not any("nothing moved in any process" in line for line in finding.evidence):
        return
    begin = min(stall.since for stall in case.stalls)
    looks = [look for look in case.looks if look.at >= begin]
    used = sum(t.cpu for p in looks[-1].processes for t in p.threads) - sum(
        t.cpu for p in looks[0].processes for t in p.threads
    )
    assert used < 0.2 * (looks[-1].at - looks[0].at)


@pytest.mark.parametrize(("case", "finding"), ALL)
def test_a_full_pipe_has_a_writer(case: Case, finding: Finding) -> None:
    if finding.rule == "pipe-full":
        look = next(look for look in reversed(case.looks) if look.stacks)
        writers = [p.pid for p in look.processes for t in p.threads if t.wait and t.wait.kind == "pipe-write"]
        assert any(f"(pid {pid}) is stuck writing" in finding.title for pid in writers)


@pytest.mark.parametrize("name", HANGS)
def test_a_look_from_before_the_standstill_says_nothing_about_it(name: str) -> None:
    case = case_of(name)
    last = case.looks[-1].at
    begun_later = tuple(replace(stall, since=last + 1.0) for stall in case.stalls)
    assert diagnose(replace(case, stalls=begun_later)).findings == ()
