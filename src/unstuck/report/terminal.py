"""Findings on a terminal: the cause in one line, then the evidence, the source, the fix."""

from __future__ import annotations

from unstuck.families import NOT_LEARNING
from unstuck.model import Case, Finding, Stall, Where
from unstuck.report import curve, wording
from unstuck.report.code_excerpt import excerpt
from unstuck.report.json_report import training_flights
from unstuck.report.page import Page, Piece
from unstuck.report.screen import Screen
from unstuck.rules.diagnose import Diagnosis
from unstuck.rules.rank_positions import world_of

_STYLES = {"error": "bold red", "warning": "bold yellow", "info": "bold cyan", "recovered": "bold green"}
MAX_HEALED = 8  # acts that are listed
MAX_MORE = 6  # findings shown after the primary one; more is noise


def render(
    case: Case,
    diagnosis: Diagnosis,
    screen: Screen,
    *,
    next_command: str = "",
    live: bool = True,
    stopping: bool = False,
) -> str:
    """The whole answer as text. Ends with the next command to type, where there is one.

    `live`: the run is being watched now, not read from what was saved of it; `stopping`: we are about to end it."""
    page = Page(screen)
    page.banner(wording.program(case), wording.outcome(case), wording.progress(case))
    current = [finding for finding in diagnosis.findings if not finding.withdrawn]
    if current:
        _findings(page, case, current)
        if diagnosis.questions and all(finding.severity == "info" for finding in current):
            page.heading("What would settle it")
            page.bullets(_questions(diagnosis))
    for finding in diagnosis.findings:
        if finding.withdrawn:
            _recovered(page, finding)
    if not diagnosis.findings:
        _nothing(page, case, diagnosis)
    _healed(page, case)
    _goes_on(page, case, current, live, stopping)
    unseen(page, case, diagnosis)
    page.next_command(next_command)
    return f"\n{page}"


def _findings(page: Page, case: Case, findings: list[Finding]) -> None:
    first, *others = findings
    primary(page, case, first)
    drawn = [curve.curve_of(case, first)]
    for finding in others[:MAX_MORE]:
        short(page, case, finding)
        if (loss := curve.curve_of(case, finding)) and not any(loss.same_as(other) for other in drawn):
            curve.show(page, loss)
            drawn.append(loss)
    if len(others) > MAX_MORE:
        page.blank()
        page.line((f"and {len(others) - MAX_MORE} more in the JSON report", "dim"), indent=2)


def primary(page: Page, case: Case, finding: Finding) -> None:
    _headline(page, finding)
    if finding.evidence or finding.verified:
        page.heading("Evidence")
        page.bullets(finding.evidence)
        if finding.verified:
            page.line(finding.verified, lead=(f"{page.glyph('recovered')} proven: ", "bold green"), indent=4)
    if loss := curve.curve_of(case, finding):
        curve.show(page, loss)
    if wording.location(finding.where, case.cwd) or wording.identity(finding.where):
        page.heading("Where")
        _spot(page, case, finding.where, around=3)
        for where in finding.also[:4]:
            page.blank()
            _spot(page, case, where, around=1)
    if finding.fix.text or finding.fix.diff:
        page.heading("Fix")
        page.line(finding.fix.text, indent=4)
        if finding.fix.diff:
            page.blank()
            page.diff(finding.fix.diff, indent=6, wrap=True)
    if finding.consequences:
        page.heading("What follows from it")
        page.bullets(finding.consequences)


def short(page: Page, case: Case, finding: Finding) -> None:
    page.blank()
    _headline(page, finding)
    page.bullets(finding.evidence[:2])
    spot = wording.location(finding.where, case.cwd)
    if spot:
        page.flow([spot, *((part, "dim") for part in wording.identity(finding.where))], indent=4)
    if finding.fix.text:
        page.line(finding.fix.text, lead=("Fix: ", "bold"), indent=4)


def _recovered(page: Page, finding: Finding) -> None:
    page.blank()
    _headline(page, finding)
    if finding.family in NOT_LEARNING:
        why = "Later steps do not confirm it: this finding no longer applies."
    else:
        why = "The run recovered: this finding no longer applies."
    page.line(why, indent=2)


def _nothing(page: Page, case: Case, diagnosis: Diagnosis) -> None:
    stall = next((stall for stall in case.stalls if not stall.excuse), None)
    if stall is not None and case.outcome in ("running", "interrupted", "stopped"):
        page.verdict("unknown", "bold yellow", f"No progress: {wording.stalled_for(stall)}. The cause is not known.")
        page.flow(wording.doing(stall, case), indent=2)
    elif case.outcome == "died":
        page.verdict("unknown", "bold yellow", f"No rule explains this death: {wording.outcome(case)}.")
        for flight in training_flights(case)[:4]:
            last = Stall(flight.pid, flight.phase, flight.since, 0.0)
            page.flow([f"last seen in phase {flight.phase}", *wording.doing(last, case)], indent=2)
    else:
        page.verdict("recovered", "bold green", "Nothing found.")
        return
    world = world_of(case)
    page.bullets([*(world.roll_call() if world is not None else ()), *_questions(diagnosis)])


def _healed(page: Page, case: Case) -> None:
    if case.healed:
        page.heading("Healed")
        page.bullets([act.what for act in case.healed[:MAX_HEALED]])
        if len(case.healed) > MAX_HEALED:
            page.line((f"and {len(case.healed) - MAX_HEALED} more in the JSON report", "dim"), indent=4)


def _questions(diagnosis: Diagnosis) -> list[str]:
    """What would establish the cause."""
    return [f"{question.asks} {question.would_decide}" for question in diagnosis.questions[:3]]


def _goes_on(page: Page, case: Case, findings: list[Finding], live: bool, stopping: bool) -> None:
    if case.outcome != "running" or stopping:
        return
    if not live:
        state = "The run had not ended when this was saved."
    elif any(finding.family in ("hang", "ranks") for finding in findings):
        state = (
            "The training is still running, but stuck. unstuck keeps watching and reports it if it moves again; "
            "Ctrl-C ends it."
        )
    else:
        return
    page.blank()
    page.line((state, "dim"), indent=2)


# What cannot be seen of how the training learns.
COMPILED = "inside compiled parts of the model: of these only loss, gradients, updates and learning rates are known"
ON_GPU = "values on the GPU at the step that made them: they are read some steps later, so that nothing waits"


def unseen(page: Page, case: Case, diagnosis: Diagnosis) -> None:
    trouble = list(dict.fromkeys(case.looks[-1].trouble)) if case.looks else []
    trouble += [f"{probe}: {why}" for probe, why in dict.fromkeys((*case.probes_off, *diagnosis.probes_off))]
    if any(finding.family in NOT_LEARNING for finding in diagnosis.findings):
        trouble += [COMPILED] * any(learning.compiled for learning in case.learnings)
        trouble += [ON_GPU] * any(learning.on_gpu for learning in case.learnings)
    if not trouble:
        return
    page.blank()
    page.line(("What could not be seen", "dim"), indent=2)
    page.bullets((line, "dim") for line in trouble[:4])
    if len(trouble) > 4:
        page.line((f"and {len(trouble) - 4} more in the JSON report", "dim"), indent=4)


# --- parts of a finding --------------------------------------------------------------------------------------


def _headline(page: Page, finding: Finding) -> None:
    kind = "recovered" if finding.withdrawn else finding.severity
    page.line((finding.title, "bold"), lead=(f"{page.glyph(kind)} ", _STYLES[kind]))
    labels: list[Piece] = [(finding.rule, "cyan"), (kind, _STYLES[kind].split()[1])]
    if not finding.withdrawn:
        labels.append(("proven by experiment" if finding.verified else wording.sure(finding.confidence), "dim"))
    page.flow(labels, indent=2)


def _spot(page: Page, case: Case, where: Where, around: int) -> None:
    location = wording.location(where, case.cwd)
    parts: list[Piece] = [(location, "cyan")] if location else []
    page.flow([*parts, *((part, "dim") for part in wording.identity(where))], indent=4)
    code = excerpt(where, case, around)
    if code.note:
        page.line((code.note, "dim"), indent=4)
    if not code.lines:
        return
    if len(code.lines) > 1:
        page.blank()
    digits = len(str(code.lines[-1].number))
    for line in code.lines:
        number = f"{line.number:>{digits}} "
        bar = (page.glyph("bar") + " ", "dim")
        if line.marked:
            page.cut((page.glyph("arrow") + " ", "bold red"), (number, "bold"), bar, (line.text, "bold"), indent=4)
        else:
            page.cut("  ", (number, "dim"), bar, (line.text, "dim"), indent=4)
