"""Findings for GitHub Actions: what its runner and its page make of them."""

from __future__ import annotations

from pathlib import Path

from unstuck.model import Case, Finding, Fix, Severity, Where
from unstuck.report import github
from unstuck.rules.diagnose import Diagnosis


def finding(severity: Severity = "error", **more: object) -> Finding:
    given = {
        "rule": "sample-spins",
        "family": "hang",
        "confidence": 0.9,
        "title": "Worker 1 spins",
        "evidence": ("100 % CPU for 20 s",),
        "where": Where("data.py", 7, "get"),
        "fix": Fix("Limit the loop."),
        "seen_by": "flight",
        **more,
    }
    return Finding(severity=severity, **given)  # type: ignore[arg-type]


def test_it_is_on_where_a_workflow_runs_or_when_asked_for() -> None:
    assert github.wanted(None, {"GITHUB_ACTIONS": "true"})
    assert github.wanted("github", {})
    assert not github.wanted(None, {})
    assert not github.wanted("terminal", {"GITHUB_ACTIONS": "true"})


def test_an_annotation_stands_at_its_line(tmp_path: Path) -> None:
    work = {"GITHUB_WORKSPACE": str(tmp_path)}
    lines = github.annotation_lines(
        [finding(), finding("warning"), finding("info")], Case(cwd=f"{tmp_path}/jobs"), environ=work
    )
    kinds = [line.partition(" ")[0] for line in lines.splitlines()]
    assert kinds == ["::error", "::warning", "::notice"]
    assert lines.splitlines()[0] == (
        "::error file=jobs/data.py,line=7,title=unstuck%3A sample-spins::Worker 1 spins%0A100 %25 CPU for 20 s%0A"
        "Fix: Limit the loop."
    )


def test_what_is_not_in_the_checkout_has_no_file(tmp_path: Path) -> None:
    work = {"GITHUB_WORKSPACE": str(tmp_path)}
    where = Where("/usr/lib/python3/site-packages/x.py", 3)
    lines = github.annotation_lines([finding(where=where)], Case(cwd=str(tmp_path)), environ=work)
    assert lines.startswith("::error title=unstuck%3A sample-spins::")


def test_nothing_in_a_text_is_a_command_or_a_property(tmp_path: Path) -> None:
    hostile = finding(title="a\n::set-output name=x::1\r", where=Where("a,line=9::b.py", 1))
    (line,) = github.annotation_lines([hostile], Case(cwd=str(tmp_path)), environ={}).splitlines()
    assert line.startswith("::error file=a%2Cline=9%3A%3Ab.py,line=1,title=")
    assert "a%0A::set-output name=x::1%0D%0A" in line
    assert "\ud800" not in github.annotation_lines([finding(title="bytes \ud800")], Case(), environ={})


def test_the_summary_is_the_report_as_markdown(tmp_path: Path) -> None:
    (tmp_path / "data.py").write_text("def get(i):\n    while True:\n        pass\n")
    page, case = tmp_path / "summary.md", Case(cwd=str(tmp_path), command=("python", "train.py"), outcome="stopped")
    page.write_text("before\n")
    told = finding(where=Where("data.py", 2, "get"), fix=Fix("Limit it.", "+for _ in range(9):"))
    github.write_summary(case, Diagnosis((told,)), redact=False, environ={"GITHUB_STEP_SUMMARY": str(page)})
    text = page.read_text()
    assert text.startswith("before\n## Worker 1 spins\n")
    assert "while True:" in text
    assert "**Fix.** Limit it." in text
    github.write_summary(case, Diagnosis((told,)), redact=False, environ={})


def test_what_is_redacted_stays_out_of_annotations() -> None:
    told = finding(evidence=("it reads /home/ann/secret.csv",))
    assert "secret" not in github.annotation_lines([told], Case(), redact=True, environ={})
