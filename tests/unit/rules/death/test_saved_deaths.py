"""The rules on deaths, on saved Cases: silent where nothing died, and never judging by a message's text."""

from __future__ import annotations

import signal
from dataclasses import replace
from typing import Any

import pytest

from tests.corpus import FAULTY
from tests.unit.rules.death.runs import MEMORY, said
from tests.unit.rules.record_cases import case_file, saved_case
from unstuck.model import Case, Exit
from unstuck.serial import from_plain, to_plain

NAMES = sorted(
    name
    for name, script in FAULTY.items()
    if script.family == "death" and script.rules[0] not in MEMORY and case_file(name).exists()
)
BY_ERROR = [name for name in NAMES if FAULTY[name].rules[0] != "ended-from-outside"]


def rule_of(name: str) -> list[tuple[str, str]]:
    return [(FAULTY[name].rules[0], "error")]


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
