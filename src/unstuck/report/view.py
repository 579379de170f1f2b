"""What a page shows of a run, as plain data: the same for HTML and Markdown, and what `--redact` goes through."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from unstuck.families import FAMILIES, NOT_LEARNING
from unstuck.model import Case, Finding, Stall, Where
from unstuck.report import wording
from unstuck.report.code_excerpt import excerpt
from unstuck.report.json_report import report
from unstuck.report.stack_view import cut, stacks
from unstuck.rules.diagnose import Diagnosis
from unstuck.text import count, seconds, size

AROUND = 4  # lines of source on each side of the one that is marked
MAX_TITLE = 300  # characters
MAX_PATH = 40  # characters
MAX_FINDINGS = 12
FIRST_IN_LAYER = 3  # spots beside the main one that are shown with their source

Plain = dict[str, Any]


def view(case: Case, diagnosis: Diagnosis, series: Plain | None = None) -> Plain:
    """`series`: of a report that was read back; else it is made from the Case."""
    plain = report(case, diagnosis, series)
    standing = [finding for finding in diagnosis.findings if not finding.withdrawn]
    withdrawn = [finding for finding in diagnosis.findings if finding.withdrawn]
    return {
        "program": wording.program(case) or "a training",
        "command": list(case.command),
        "outcome": wording.outcome(case),
        "running": case.outcome == "running",
        "progress": wording.progress(case),
        "verdict": _verdict(case, diagnosis, standing),
        "primary": _finding(case, standing[0], AROUND) if standing else None,
        "others": [_finding(case, finding, 1) for finding in standing[1:MAX_FINDINGS]],
        "more": max(0, len(standing) - MAX_FINDINGS),
        "withdrawn": [_finding(case, finding, 0) for finding in withdrawn[:MAX_FINDINGS]],
        "questions": [cut(f"{q.asks} {q.would_decide}") for q in diagnosis.questions[:4]],
        "healed": [cut(act.what) for act in case.healed[:MAX_FINDINGS]],
        "phases": _phases(plain["phases"]),
        "watched": _watched(case, plain),
        "ruled_out": _ruled_out(diagnosis),
        "stacks": stacks(case, standing),
        "machine": _machine(case, plain),
        "unseen": [cut(f"{item['probe']}: {item['why']}") for item in plain["probes_off"]],
        "series": plain["series"],
        "marks": _marks(diagnosis.findings),
        "version": plain["tool"]["version"],
    }


# --- the answer ----------------------------------------------------------------------------------------------


def _verdict(case: Case, diagnosis: Diagnosis, standing: list[Finding]) -> Plain:
    """The answer in one sentence, and its tone: error, warning, info, good, unknown."""
    if standing:
        first = standing[0]
        sure = "proven by experiment" if first.verified else wording.sure(first.confidence)
        kind = FAMILIES.get(first.family, first.family)
        return {"tone": first.severity, "title": cut(first.title, MAX_TITLE), "labels": [first.rule, kind, sure]}
    stall = next((stall for stall in case.stalls if not stall.excuse), None)
    if stall is not None and case.outcome in ("running", "interrupted", "stopped"):
        title = f"No progress: {wording.stalled_for(stall)}. The cause is not known."
        return {"tone": "unknown", "title": title, "labels": wording.doing(stall, case)}
    if case.outcome == "died":
        title = f"No rule explains this death: {wording.outcome(case)}."
        return {"tone": "unknown", "title": title, "labels": _last_seen(case)}
    if diagnosis.findings:
        return {"tone": "good", "title": "The run recovered: nothing that was found still applies.", "labels": []}
    state = "so far" if case.outcome == "running" else "in this run"
    looked = count(sum(len(names) for _, names in _silent(diagnosis)), "cause")
    return {"tone": "good", "title": f"Nothing wrong was found {state}.", "labels": [f"{looked} looked for"]}


def _finding(case: Case, finding: Finding, around: int) -> Plain:
    return {
        "rule": finding.rule,
        "family": finding.family,
        "severity": finding.severity,
        "sure": "proven by experiment" if finding.verified else wording.sure(finding.confidence),
        "title": cut(finding.title, MAX_TITLE),
        "evidence": [cut(line) for line in finding.evidence],
        "verified": cut(finding.verified or ""),
        "spots": list(_spots(case, finding, around)),
        "fix": cut(finding.fix.text),
        "diff": finding.fix.diff or "",
        "consequences": [cut(line) for line in finding.consequences],
        "why_withdrawn": "Later steps do not confirm it."
        if finding.family in NOT_LEARNING
        else "The run recovered, or ended normally.",
    }


def _spots(case: Case, finding: Finding, around: int) -> Iterable[Plain]:
    places: list[tuple[Where, int]] = [(finding.where, around)]
    places += [(where, min(around, 1)) for where in finding.also[:FIRST_IN_LAYER]]
    for where, lines in places:
        code = excerpt(where, case, lines) if lines else None
        location, who = wording.location(where, case.cwd), wording.identity(where)
        if location or who:
            yield {
                "location": cut(_short(location)),
                "who": [cut(part) for part in who],
                "note": code.note if code else "",
                "lines": [[line.number, cut(line.text), line.marked] for line in code.lines] if code else [],
            }


def _short(location: str) -> str:
    """The last folders of a long path: the rest of it says nothing that the person does not know."""
    path, _, rest = location.partition(":")
    folders = path.split("/")
    return f"…/{'/'.join(folders[-2:])}:{rest}" if len(path) > MAX_PATH and len(folders) > 3 else location


def _marks(findings: Iterable[Finding]) -> list[Plain]:
    """Steps to mark in the drawings."""
    steps: dict[int, str] = {}
    for finding in findings:
        if finding.where.step is not None:
            steps.setdefault(finding.where.step, finding.rule)
    return [{"step": step, "text": rule} for step, rule in steps.items()][:MAX_FINDINGS]


# --- how it went ---------------------------------------------------------------------------------------------

PHASES = {
    "data": "waiting for data",
    "between": "your code: forward pass and all else",
    "backward": "backward pass",
    "optimizer": "optimizer step",
}


def _phases(phases: dict[str, Plain]) -> list[Plain]:
    return [
        {
            "name": name,
            "words": words,
            "seconds": seconds(phases[name]["seconds"]),
            "percent": round(100 * phases[name]["share"], 1),
        }
        for name, words in PHASES.items()
        if name in phases and phases[name]["share"] > 0
    ]


def _watched(case: Case, plain: Plain) -> list[list[str]]:
    """What was looked at, in numbers."""
    run, found = plain["run"], plain["series"]
    workers = {flight.worker for flight in case.flights if flight.role == "worker"}
    rows = [
        ["time", seconds(run["seconds"])],
        ["steps", f"{run['steps']:,}" if run["steps"] else ""],
        ["epochs", f"{run['epochs']:,}" if run["epochs"] else ""],
        ["processes", f"{len(case.flights):,}" if len(case.flights) > 1 else ""],
        ["DataLoader workers", f"{len(workers):,}" if workers else ""],
        ["losses", _first_and_last(found["loss"])],
        ["layers", f"{found['layers'][0]['of']:,}" if found["layers"] else ""],
        ["most memory", size(max((max(m["bytes"], default=0) for m in found["memory"]), default=0))],
        ["cost of watching", _cost(run["overhead"])],
    ]
    return [row for row in rows if row[1] and row[1] != "0 bytes"]


def _cost(overhead: dict[str, float]) -> str:
    return f"{seconds(overhead['seconds'])}, {100 * overhead['share']:.2g} %" if overhead["seconds"] else ""


def _first_and_last(losses: list[Plain]) -> str:
    values = [value for value in (losses[0]["value"] if losses else []) if value is not None]
    return f"{values[0]:.3g} → {values[-1]:.3g}" if len(values) > 1 else ""


def _ruled_out(diagnosis: Diagnosis) -> list[list[str]]:
    return [[words, count(len(names), "cause"), ", ".join(names)] for words, names in _silent(diagnosis)]


def _silent(diagnosis: Diagnosis) -> list[tuple[str, list[str]]]:
    """Families of causes, and their rules that had nothing to say."""
    from unstuck.rules import RULES

    spoke = {finding.rule for finding in diagnosis.findings}
    silent = [rule for rule in RULES if rule.name not in spoke]
    return [(words, [rule.name for rule in silent if rule.family == family]) for family, words in FAMILIES.items()]


def _machine(case: Case, plain: Plain) -> list[list[str]]:
    rows = [[key, str(value)] for key, value in plain["machine"].items() if not isinstance(value, dict)]
    scheduler = plain["machine"].get("scheduler")
    if isinstance(scheduler, dict):
        rows.append(["scheduler", " ".join(str(scheduler[key]) for key in ("name", "job") if key in scheduler)])
    limited = [(group.limit, group.usage) for group in case.groups if group.version and group.limit]
    rows += [["memory limit", f"{size(limit)}, {size(usage)} in use"] for limit, usage in limited]
    return [[key, cut(value)] for key, value in rows]


def _last_seen(case: Case) -> list[str]:
    """What each training process was last at, where no rule explains a death."""
    words = []
    for flight in case.flights:
        if flight.role in ("main", "rank"):
            stall = Stall(flight.pid, flight.phase, flight.since, 0.0)
            words.append(" · ".join([f"last seen in phase {flight.phase}", *wording.doing(stall, case)]))
    return words[:4]
