"""What was said of a training that goes on stands only as long as its later steps bear it out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.test_stop_on import finding
from unstuck.model import Finding, Severity
from unstuck.supervise.inquiry import Inquiry, Said, is_quiet


def after(said: list[Finding], found: tuple[Finding, ...]) -> list[tuple[str, bool]]:
    """Rules that are still told, and whether withdrawn."""
    inquiry = Inquiry.__new__(Inquiry)
    inquiry.said = [Said(each, None, 0.0) for each in said]
    inquiry._disown(found)
    return [(each.finding.rule, each.finding.withdrawn) for each in inquiry.said]


SLOW, RISK, HANG = finding("learning", "warning"), finding("learning", "info"), finding("hang", "error")


@pytest.mark.parametrize(
    ("said", "found", "left"),
    [
        ([SLOW], (SLOW,), [("a-learning", False)]),
        ([SLOW], (), [("a-learning", True)]),
        ([RISK], (), []),
        ([HANG], (), [("a-hang", False)]),
        ([SLOW], (replace(HANG, consequences=("a-learning: it is so",)),), [("a-learning", False)]),
    ],
)
def test_later_steps_decide(said: list[Finding], found: tuple[Finding, ...], left: list[tuple[str, bool]]) -> None:
    assert after(said, found) == left


@pytest.mark.parametrize(
    ("rule", "severity", "quiet"),
    [
        ("still-improving", "info", True),
        ("no-better-than-constant", "info", True),
        ("no-better-than-constant", "warning", False),
        ("loss-spike", "info", False),
    ],
)
def test_last_resorts_are_kept_for_the_report(rule: str, severity: Severity, quiet: bool) -> None:
    assert is_quiet(replace(finding("learning", severity), rule=rule)) is quiet
