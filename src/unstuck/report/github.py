"""Findings for GitHub Actions: annotations at the lines of the code, and a page for the summary of the step."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from unstuck.model import Case, Finding, Where
from unstuck.report.report_file import report_text
from unstuck.rules.diagnose import Diagnosis

_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def wanted(format: str | None, environ: Mapping[str, str] = os.environ) -> bool:
    """As asked for; by itself where a workflow runs."""
    return format == "github" or (format is None and environ.get("GITHUB_ACTIONS") == "true")


def annotation_lines(
    findings: Iterable[Finding], case: Case, *, redact: bool = False, environ: Mapping[str, str] = os.environ
) -> str:
    """A command of GitHub's for each finding, one line each."""
    lines = []
    for finding in findings:
        message: list[str] = [finding.title, *finding.evidence, f"Fix: {finding.fix.text}"]
        if redact:
            from unstuck.report.redact import redacted

            message = redacted(message, case)
        lines.append(_annotation(finding, message, case.cwd, environ))
    return "".join(f"{line}\n" for line in lines)


def _annotation(finding: Finding, message: list[str], cwd: str, environ: Mapping[str, str]) -> str:
    file = _in_repository(finding.where, cwd, environ)
    told = {"file": file, "line": finding.where.line if file else None, "title": f"unstuck: {finding.rule}"}
    properties = ",".join(f"{name}={_property(str(value))}" for name, value in told.items() if value is not None)
    return f"::{_COMMANDS[finding.severity]} {properties}::{_data(chr(10).join(message))}"


def _in_repository(where: Where, cwd: str, environ: Mapping[str, str]) -> str | None:
    """The file as GitHub knows it; None for one that is not in the checkout."""
    if where.file is None or where.file.startswith("<"):
        return None
    root = os.path.realpath(environ.get("GITHUB_WORKSPACE") or cwd or ".")
    path = os.path.realpath(os.path.join(cwd, where.file))
    return os.path.relpath(path, root) if path.startswith(root.rstrip("/") + "/") else None


def _data(text: str) -> str:
    text = text.encode("utf-8", "replace").decode()  # a path may hold bytes that are no text
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def write_summary(case: Case, diagnosis: Diagnosis, *, redact: bool, environ: Mapping[str, str] = os.environ) -> None:
    """Append the report as Markdown to the page that GitHub shows for the step. Raises OSError."""
    path = environ.get("GITHUB_STEP_SUMMARY")
    if path:
        page = report_text(".md", case, diagnosis, redact=redact)
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{page}\n")
