"""The Markdown report: what is pasted into a bug report reads as it was meant, and nothing in it acts."""

from __future__ import annotations

from tests.unit.rules.record_cases import saved_case

from unstuck.model import Case, Finding, Fix, Where
from unstuck.report.report_file import report_text
from unstuck.rules.diagnose import Diagnosis, diagnose


def test_a_finding_with_all_its_parts() -> None:
    case = saved_case("fork-vocab-refresher")
    diagnosis = diagnose(case)
    written = report_text(".md", case, diagnosis)
    first = diagnosis.findings[0]
    assert written.startswith(f"## {first.title.partition('`')[0]}")
    assert first.rule in written
    assert written.count("\n- ") >= len(first.evidence)
    assert "> 17 | with self.lock:" in written
    assert "**Fix.**" in written
    assert "<details><summary>Stacks" in written


def test_fences_and_marks_of_the_users_do_not_break_out() -> None:
    finding = Finding(
        rule="r",
        family="hang",
        severity="error",
        confidence=0.9,
        title="<img src=x> # [a](b) *x* `ok`",
        evidence=("| a | b |", "one\n# two"),
        where=Where("a.py", 1, "```"),
        fix=Fix("f", "```\n<script>\n```"),
        seen_by="kernel",
    )
    written = report_text(".md", Case(), Diagnosis((finding,)))
    assert written.splitlines()[0] == r"## \<img src=x\> \# \[a\](b) \*x\* `ok`"
    assert "````diff\n```\n<script>\n```\n````" in written
    assert "\n# two" not in written


def test_a_healthy_run_says_what_was_watched() -> None:
    written = report_text(".md", Case(outcome="finished", seconds=61.0), Diagnosis())
    assert written.startswith("## Nothing wrong was found in this run.")
    assert "- time: 61 s" in written
