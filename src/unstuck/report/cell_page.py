"""Findings as HTML for the output of a notebook's cell: what the terminal shows, in the colours of the notebook."""

from __future__ import annotations

import html
from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.report import wording
from unstuck.report.code_excerpt import excerpt

_COLORS = {"error": "#d33", "warning": "#c80", "info": "#28c"}
_CODE = "margin:.5em 0;padding:.5em;border-radius:4px;background:rgba(128,128,128,.12);overflow-x:auto"
_CHANGED = {"+": "#2a2", "-": "#d33"}


def cell_page(findings: Iterable[Finding], case: Case) -> str:
    """Empty where there is nothing to show."""
    return "".join(_withdrawn(each) if each.withdrawn else _finding(each, case) for each in findings)


def _finding(finding: Finding, case: Case) -> str:
    color = _COLORS[finding.severity]
    place = wording.location(finding.where, case.cwd)
    about = " · ".join((finding.rule, finding.severity, wording.sure(finding.confidence)))
    return (
        f'<div style="border-left:4px solid {color};padding:.3em .8em;margin:.5em 0">'
        f'<div><b style="color:{color}">unstuck</b> <b>{_text(finding.title)}</b></div>'
        f'<div style="opacity:.7;font-size:90%">{_text(about)}</div>'
        f'<ul style="margin:.4em 0">{"".join(f"<li>{_text(line)}</li>" for line in finding.evidence)}</ul>'
        f"<div>{_text(' · '.join(filter(None, (place, *wording.identity(finding.where)))))}</div>"
        f"{_source(finding, case)}<div><b>Fix:</b> {_text(finding.fix.text)}</div>{_diff(finding.fix.diff)}</div>"
    )


def _withdrawn(finding: Finding) -> str:
    return (
        f'<div style="border-left:4px solid #2a2;padding:.3em .8em;margin:.5em 0"><b style="color:#2a2">unstuck</b> '
        f"no longer applies: {_text(finding.title)}</div>"
    )


def _source(finding: Finding, case: Case) -> str:
    lines = [
        f'<b style="color:{_COLORS["error"]}">▶ {line.number:>3}  {_text(line.text)}</b>'
        if line.marked
        else f"  {line.number:>3}  {_text(line.text)}"
        for line in excerpt(finding.where, case, around=3).lines
    ]
    return _block(lines)


def _diff(diff: str | None) -> str:
    colors = ((_CHANGED.get(line[:1]), line) for line in (diff or "").splitlines())
    return _block(
        [f'<span style="color:{color}">{_text(line)}</span>' if color else _text(line) for color, line in colors]
    )


def _block(lines: list[str]) -> str:
    return f'<pre style="{_CODE}">{chr(10).join(lines)}</pre>' if lines else ""


def _text(text: str) -> str:
    return html.escape(text.encode("utf-8", "replace").decode())
