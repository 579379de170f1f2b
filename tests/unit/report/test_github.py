"""Findings for GitHub Actions: what its runner and its page make of them."""

from __future__ import annotations

from pathlib import Path

from unstuck.model import Case, Finding, Fix, Severity, Where
from unstuck.report import github


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
    lines = github.annotation_lines([finding(), finding("warning"), finding("info")], f"{tmp_path}/jobs", work)
    kinds = [line.partition(" ")[0] for line in lines.splitlines()]
    assert kinds == ["::error", "::warning", "::notice"]
    assert lines.splitlines()[0] == (
        "::error file=jobs/data.py,line=7,title=unstuck%3A sample-spins::Worker 1 spins%0A100 %25 CPU for 20 s%0A"
        "Fix: Limit the loop."
    )


def test_what_is_not_in_the_checkout_has_no_file(tmp_path: Path) -> None:
    where = Where("/usr/lib/python3/site-packages/x.py", 3)
    lines = github.annotation_lines([finding(where=where)], str(tmp_path), {"GITHUB_WORKSPACE": str(tmp_path)})
    assert lines.startswith("::error title=unstuck%3A sample-spins::")


def test_nothing_in_a_text_is_a_command_or_a_property(tmp_path: Path) -> None:
    hostile = finding(title="a\n::set-output name=x::1\r", where=Where("a,line=9::b.py", 1))
    (line,) = github.annotation_lines([hostile], str(tmp_path), {}).splitlines()
    assert line.startswith("::error file=a%2Cline=9%3A%3Ab.py,line=1,title=")
    assert "a%0A::set-output name=x::1%0D%0A" in line
    assert "\ud800" not in github.annotation_lines([finding(title="bytes \ud800")], "", {})


def test_the_summary_shows_the_line_and_the_fix(tmp_path: Path) -> None:
    (tmp_path / "data.py").write_text("def get(i):\n    while True:\n        pass\n")
    page, case = tmp_path / "summary.md", Case(cwd=str(tmp_path), command=("python", "train.py"), outcome="stopped")
    page.write_text("before\n")
    told = finding(where=Where("data.py", 2, "get"), fix=Fix("Limit it.", "+for _ in range(9):"))
    github.write_summary([told], case, {"GITHUB_STEP_SUMMARY": str(page)})
    text = page.read_text()
    assert text.startswith("before\n## unstuck: train.py · stopped\n\n### ❌ Worker 1 spins\n")
    assert "    while True:  # ◀ line 2" in text
    assert "**Fix:** Limit it.\n\n```diff\n+for _ in range(9):\n```" in text
    github.write_summary([], case, {"GITHUB_STEP_SUMMARY": str(page)})
    assert page.read_text() == text, "a healthy run adds nothing"


def test_text_stays_text_on_the_page() -> None:
    hostile = finding(title="<script>x</script> *a* `code <b>` # [x](y)", evidence=("one `tick", "``` end"))
    text = github.summary([hostile], Case())
    assert r"&lt;script>x&lt;/script> \*a\* `code <b>` \# \[x\](y)" in text
    assert "- one 'tick" in text
    fenced = finding(fix=Fix("f", "+```\n+x"))
    assert "````diff\n+```\n+x\n````" in github.summary([fenced], Case())


def test_a_page_too_long_for_github_ends_with_whole_findings() -> None:
    many = [finding(evidence=("x" * 9_000,))] * 20
    text = github.summary(many, Case())
    assert len(text) < github.MAX_SUMMARY + 100
    assert text.endswith("more in the JSON report\n\n")
