"""Findings on a terminal: the cause in one line, then the evidence, the source, the fix."""

from __future__ import annotations

from unstuck.model import Case, Finding, Stall, Where
from unstuck.report import curve, wording
from unstuck.report.code_excerpt import excerpt
from unstuck.report.json_report import training_flights
from unstuck.report.page import Page, Piece
from unstuck.report.status import doing, render_status, standing, wants_color, wants_unicode, width_of
from unstuck.rules.diagnose import Diagnosis

__all__ = ["primary", "render", "render_status", "short", "unseen", "wants_color", "wants_unicode", "width_of"]

_STYLES = {"error": "bold red", "warning": "bold yellow", "info": "bold cyan", "recovered": "bold green"}
_NAMED = 6
"""Findings shown beside the primary one; more than that is noise."""


def render(
    case: Case,
    diagnosis: Diagnosis,
    *,
    color: bool,
    width: int,
    unicode: bool = True,
    next_command: str = "",
    live: bool = True,
    stopping: bool = False,
) -> str:
    """The whole answer as text. Ends with the next command to type, where there is one.

    `live`: the run is being watched now, not read from what was saved of it; `stopping`: it is about to be ended
    by us."""
    page = Page(color=color, width=width, unicode=unicode)
    _head(page, case)
    standing_ones = [finding for finding in diagnosis.findings if not finding.withdrawn]
    recovered = [finding for finding in diagnosis.findings if finding.withdrawn]
    if standing_ones:
        primary(page, case, standing_ones[0])
        drawn = [curve.curve_of(case, standing_ones[0])]
        for finding in standing_ones[1 : _NAMED + 1]:
            short(page, case, finding)
            if (found := curve.curve_of(case, finding)) and not any(found.same_as(other) for other in drawn):
                curve.show(page, found)
                drawn.append(found)
        if diagnosis.questions and all(finding.severity == "info" for finding in standing_ones):
            _open(page, diagnosis)
        if len(standing_ones) > _NAMED + 1:
            page.blank()
            page.line((f"and {len(standing_ones) - _NAMED - 1} more in the JSON report", "dim"), indent=2)
    for finding in recovered:
        _recovered(page, finding)
    if not diagnosis.findings:
        _nothing(page, case, diagnosis)
    _goes_on(page, case, standing_ones, live, stopping)
    unseen(page, case, diagnosis)
    if next_command:
        page.blank()
        page.whole(("next: ", "dim"), next_command, indent=2)
    return f"\n{page}"


def _head(page: Page, case: Case) -> None:
    parts = [part for part in ("unstuck", wording.program(case), wording.outcome(case), wording.progress(case)) if part]
    page.banner((part, "bold" if part == "unstuck" else "dim") for part in parts)
    page.blank()


def primary(page: Page, case: Case, finding: Finding) -> None:
    _headline(page, finding)
    if finding.evidence or finding.verified:
        _heading(page, "Evidence")
        _bullets(page, finding.evidence)
        if finding.verified:
            page.line(finding.verified, lead=(f"{page.glyph('recovered')} proven: ", "bold green"), indent=4)
    if found := curve.curve_of(case, finding):
        curve.show(page, found)
    if wording.place(finding.where, case.cwd) or wording.party(finding.where):
        _heading(page, "Where")
        _spot(page, case, finding.where, around=3)
        for where in finding.also[:4]:
            page.blank()
            _spot(page, case, where, around=1)
    if finding.fix.text or finding.fix.diff:
        _heading(page, "Fix")
        page.line(finding.fix.text, indent=4)
        _diff(page, finding.fix.diff)
    if finding.consequences:
        _heading(page, "What follows from it")
        _bullets(page, finding.consequences)


def short(page: Page, case: Case, finding: Finding) -> None:
    page.blank()
    _headline(page, finding)
    _bullets(page, finding.evidence[:2])
    spot = wording.place(finding.where, case.cwd)
    if spot:
        page.flow([spot, *((part, "dim") for part in wording.party(finding.where))], indent=4)
    if finding.fix.text:
        page.line(finding.fix.text, lead=("Fix: ", "bold"), indent=4)


def _recovered(page: Page, finding: Finding) -> None:
    page.blank()
    _headline(page, finding)
    why = "Later steps do not bear it out" if finding.family in ("numerics", "learning") else "It moved on by itself"
    page.line(f"{why}, so this is no longer a finding.", indent=2)


def _nothing(page: Page, case: Case, diagnosis: Diagnosis) -> None:
    stall = next((stall for stall in case.stalls if not stall.excuse), None)
    if stall is not None and case.outcome in ("running", "interrupted", "stopped"):
        said = f"Standing still: {standing(stall)}. The cause is not established."
        page.line((said, "bold"), lead=(f"{page.glyph('unknown')} ", "bold yellow"))
        page.flow(doing(stall, case), indent=2)
    elif case.outcome == "died":
        page.line(
            (f"The training {wording.outcome(case)}; no rule names a cause.", "bold"),
            lead=(f"{page.glyph('unknown')} ", "bold yellow"),
        )
        for flight in training_flights(case)[:4]:
            last = Stall(flight.pid, flight.phase, flight.since, 0.0)
            page.flow([f"last seen in phase {flight.phase}", *doing(last, case)], indent=2)
    else:
        page.line(("Nothing found.", "bold"), lead=(f"{page.glyph('recovered')} ", "bold green"))
        return
    _bullets(page, tuple(f"{question.asks} {question.would_decide}" for question in diagnosis.questions[:3]))


def _open(page: Page, diagnosis: Diagnosis) -> None:
    """What would establish the cause."""
    _heading(page, "What would decide")
    _bullets(page, tuple(f"{question.asks} {question.would_decide}" for question in diagnosis.questions[:3]))


def _goes_on(page: Page, case: Case, findings: list[Finding], live: bool, stopping: bool) -> None:
    if case.outcome != "running" or stopping:
        return
    if not live:
        said = "The run had not ended when this was saved."
    elif any(finding.family in ("hang", "ranks") for finding in findings):
        said = (
            "The training is still there, standing still. unstuck keeps watching and tells you if it moves again; "
            "Ctrl-C ends it."
        )
    else:
        return
    page.blank()
    page.line((said, "dim"), indent=2)


COMPILED = "compiled parts of the model: of these only the loss, gradients, updates and rates are known"
ON_GPU = "numbers on the GPU when they were made: they are read some steps later, so that nothing waits"
"""What cannot be seen of how the training learns."""


def unseen(page: Page, case: Case, diagnosis: Diagnosis) -> None:
    trouble = list(dict.fromkeys(case.looks[-1].trouble)) if case.looks else []
    trouble += [f"{probe}: {why}" for probe, why in dict.fromkeys((*case.probes_off, *diagnosis.probes_off))]
    if any(finding.family in ("numerics", "learning") for finding in diagnosis.findings):
        trouble += [COMPILED] * any(learning.compiled for learning in case.learnings)
        trouble += [ON_GPU] * any(learning.on_gpu for learning in case.learnings)
    if not trouble:
        return
    page.blank()
    page.line(("Could not be seen", "dim"), indent=2)
    for line in trouble[:4]:
        page.line((line, "dim"), lead=(f"{page.glyph('bullet')} ", "dim"), indent=4)
    if len(trouble) > 4:
        page.line((f"and {len(trouble) - 4} more in the JSON report", "dim"), indent=4)


# --- parts of a finding --------------------------------------------------------------------------------------


def _headline(page: Page, finding: Finding) -> None:
    kind = "recovered" if finding.withdrawn else finding.severity
    page.line((finding.title, "bold"), lead=(f"{page.glyph(kind)} ", _STYLES[kind]))
    said: list[Piece] = [(finding.rule, "cyan"), (kind, _STYLES[kind].split()[1])]
    if not finding.withdrawn:
        said.append(("proven by experiment" if finding.verified else wording.sure(finding.confidence), "dim"))
    page.flow(said, indent=2)


def _heading(page: Page, words: str) -> None:
    page.blank()
    page.line((words, "bold"), indent=2)


def _bullets(page: Page, lines: tuple[str, ...]) -> None:
    for line in lines:
        page.line(line, lead=(f"{page.glyph('bullet')} ", "dim"), indent=4)


def _spot(page: Page, case: Case, where: Where, around: int) -> None:
    place = wording.place(where, case.cwd)
    parts: list[Piece] = [(place, "cyan")] if place else []
    page.flow([*parts, *((part, "dim") for part in wording.party(where))], indent=4)
    found = excerpt(where, case, around)
    if found.note:
        page.line((found.note, "dim"), indent=4)
    if not found.lines:
        return
    if len(found.lines) > 1:
        page.blank()
    digits = len(str(found.lines[-1].number))
    for line in found.lines:
        number = f"{line.number:>{digits}} "
        bar = (page.glyph("bar") + " ", "dim")
        if line.marked:
            page.cut((page.glyph("arrow") + " ", "bold red"), (number, "bold"), bar, (line.text, "bold"), indent=4)
        else:
            page.cut("  ", (number, "dim"), bar, (line.text, "dim"), indent=4)


def _diff(page: Page, diff: str | None) -> None:
    if not diff:
        return
    page.blank()
    for line in diff.expandtabs(4).splitlines():
        style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "dim")
        page.line((line, style), indent=6)
