"""Findings for GitHub Actions: annotations at the lines of the code, and a page for the summary of the step."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from unstuck.model import Case, Finding, Where
from unstuck.report import wording
from unstuck.report.code_excerpt import excerpt

_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}
_SIGNS = {"error": "❌", "warning": "⚠️", "info": "ℹ️"}
MAX_SUMMARY = 100_000  # letters; GitHub takes 1 MiB for a step, which its other commands write to as well


def wanted(format: str | None, environ: Mapping[str, str] = os.environ) -> bool:
    """As asked for; by itself where a workflow runs."""
    return format == "github" or (format is None and environ.get("GITHUB_ACTIONS") == "true")


def annotation_lines(findings: Iterable[Finding], cwd: str, environ: Mapping[str, str] = os.environ) -> str:
    """A command of GitHub's for each finding, one line each."""
    return "".join(f"{_annotation(finding, cwd, environ)}\n" for finding in findings)


def _annotation(finding: Finding, cwd: str, environ: Mapping[str, str]) -> str:
    file = _in_repository(finding.where, cwd, environ)
    told = {"file": file, "line": finding.where.line if file else None, "title": f"unstuck: {finding.rule}"}
    properties = ",".join(f"{name}={_property(str(value))}" for name, value in told.items() if value is not None)
    message = "\n".join([finding.title, *finding.evidence, f"Fix: {finding.fix.text}"])
    return f"::{_COMMANDS[finding.severity]} {properties}::{_data(message)}"


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


# --- the summary of the step -------------------------------------------------------------------------------------


def write_summary(findings: Sequence[Finding], case: Case, environ: Mapping[str, str] = os.environ) -> None:
    """Append to the page that GitHub shows for the step. Raises OSError."""
    path = environ.get("GITHUB_STEP_SUMMARY")
    if not path or not findings:
        return
    with open(path, "ab") as file:
        file.write(summary(findings, case).encode("utf-8", "replace"))


def summary(findings: Sequence[Finding], case: Case) -> str:
    ended = " · ".join(filter(None, (wording.program(case), wording.outcome(case), wording.progress(case))))
    page = f"## unstuck: {_plain(ended)}\n\n"
    for number, finding in enumerate(findings):
        section = f"{_section(finding, case)}\n\n"
        if len(page) + len(section) > MAX_SUMMARY:
            return f"{page}and {len(findings) - number} more in the JSON report\n\n"
        page += section
    return page


def _section(finding: Finding, case: Case) -> str:
    place = wording.location(finding.where, case.cwd)
    parts = [
        f"### {_SIGNS[finding.severity]} {_plain(finding.title)}",
        _plain(" · ".join(filter(None, (finding.rule, wording.sure(finding.confidence), place)))),
        "\n".join(f"- {_plain(line)}" for line in finding.evidence),
        _fenced("\n".join(_source(finding.where, case)), "python"),
        f"**Fix:** {_plain(finding.fix.text)}",
        _fenced(finding.fix.diff or "", "diff"),
    ]
    return "\n\n".join(filter(None, parts))


def _source(where: Where, case: Case) -> list[str]:
    lines = excerpt(where, case, around=3).lines
    return [f"{line.text}{'  # ◀ line ' + str(line.number) if line.marked else ''}" for line in lines]


def _plain(text: str) -> str:
    """Nothing of the text is taken for Markdown or HTML, but for `code`."""
    inside = text.count("`") % 2 == 0
    pieces = text.split("`") if inside else [text.replace("`", "'")]
    return "`".join(piece if number % 2 else _escaped(piece) for number, piece in enumerate(pieces))


def _escaped(text: str) -> str:
    text = " ".join(text.split("\n")).replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{letter}" if letter in "\\*_[]|#~" else letter for letter in text)


def _fenced(code: str, language: str) -> str:
    """A block of code; its fence is longer than any within."""
    if not code:
        return ""
    fence = "```"
    while fence in code:
        fence += "`"
    return f"{fence}{language}\n{code}\n{fence}"
