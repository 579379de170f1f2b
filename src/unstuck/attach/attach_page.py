"""What `attach` found, on one screen: the answer, its evidence, every process in a line, what could not be seen."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import groupby
from typing import Any

from unstuck.attach.access import curtly
from unstuck.attach.activity import process_activity
from unstuck.attach.inspection import Answer
from unstuck.attach.state import State, doing
from unstuck.model import Case, Frame, Look, Process
from unstuck.report import wording
from unstuck.report.json_report import report
from unstuck.report.page import Page, Piece
from unstuck.report.screen import Screen
from unstuck.report.terminal import primary, short, unseen
from unstuck.text import seconds

_STYLES = {
    "stuck": ("error", "bold red"),
    "running": ("recovered", "bold green"),
    "stopped": ("warning", "bold yellow"),
    "ended": ("info", "bold cyan"),
    "unclear": ("unknown", "bold yellow"),
    "blind": ("unknown", "bold yellow"),
}
_HELPERS = {  # by a word of their command line
    "resource_tracker": "tracker",
    "semaphore_tracker": "tracker",
    "forkserver": "fork server",
    "compile_worker": "compile worker",
}
_MAX_ROWS = 12  # for processes; workers that do the same share one
_MAX_NATIVE, _MAX_LOCALS = 8, 12


def render(answer: Answer, state: State, screen: Screen, next_command: str = "") -> str:
    page = Page(screen)
    case = answer.case
    age = f"running for {seconds(case.seconds)}" if case.seconds else ""
    page.banner(wording.program(case), f"pid {case.root}", age)
    if answer.note:
        page.line((answer.note, "dim"), indent=2)
        page.blank()
    if state.kind == "stuck":
        first, *others = answer.diagnosis.findings
        primary(page, case, first)
        for finding in others[:3]:
            short(page, case, finding)
    else:
        glyph, style = _STYLES[state.kind]
        page.verdict(glyph, style, state.sentence)
        page.bullets(state.reasons)
        for finding in answer.diagnosis.findings[:3]:
            short(page, case, finding)
    _processes(page, answer)
    _native_and_locals(page, answer)
    _quiet(page, case)
    unseen(page, _curt(case) if state.kind == "blind" else case, answer.diagnosis)
    page.next_command(next_command)
    return f"\n{page}"


def as_json(answer: Answer, state: State) -> dict[str, Any]:
    """The JSON report, with a section of what only a look from outside has."""
    plain = report(answer.case, answer.diagnosis)
    plain["attach"] = {
        "state": state.kind,
        "doing": doing(answer),
        "sentence": state.sentence,
        "reasons": list(state.reasons),
        "looked": round(answer.seconds, 3),
        "shares": {str(pid): {word: round(share, 4) for word, share in of} for pid, of in answer.shares.items()},
        "processes": [_plain(process, answer.case) for process in _last(answer.case).processes],
        "unseen": list(_last(answer.case).trouble),
    }
    return plain


def _curt(case: Case) -> Case:
    return replace(case, looks=(*case.looks[:-1], replace(case.looks[-1], trouble=curtly(case.looks[-1].trouble))))


# --- the processes -------------------------------------------------------------------------------------------


def _processes(page: Page, answer: Answer) -> None:
    look = _last(answer.case)
    if not look.processes:
        return
    page.heading("Processes")
    rows = _rows(answer.case)
    page.table(("", "", "", ""), rows[:_MAX_ROWS], indent=4, left=(1,))
    if len(rows) > _MAX_ROWS:
        page.line((f"and {len(rows) - _MAX_ROWS} more lines in the JSON report", "dim"), indent=4)


def _native_and_locals(page: Page, answer: Answer) -> None:
    """Of where it stands, with `--native` and `--locals`."""
    for holdup in answer.holdups[:2]:
        last = next((p for p in _last(answer.case).processes if p.pid == holdup.process.pid), None)
        thread = last.main_thread if last else None
        if thread is None or last is None:
            continue
        if thread.native:
            page.heading(f"Native frames of {_name(last)} (pid {last.pid}), innermost first")
            page.line(" ← ".join(thread.native[:_MAX_NATIVE]), indent=4)
        user = next((f for f in thread.frames if f.user and f.arguments), None)
        if user is not None:
            page.heading(f"Locals of {user.function} in {_name(last)} (pid {last.pid})")
            for name, value in user.arguments[:_MAX_LOCALS]:
                page.cut((f"{name} = ", "dim"), value, indent=4)


def _rows(case: Case) -> list[list[Piece]]:
    """Pid, name, share of a core, what it does. Neighbours that do the same share a row."""
    rows: list[list[Piece]] = []
    for _, neighbours in groupby(_last(case).processes, _row_key):
        group = list(neighbours)
        first, count = group[0], len(group)
        pid, name = str(first.pid), _name(first)
        if count > 1:
            pid, name = f"{pid} …", f"{count} workers" if first.role == "worker" else f"{count} × {name}"
        rows.append([*((cell, "dim") for cell in (pid, name, _cpu(case, group))), _activity(first)])
    return rows


def _row_key(process: Process) -> tuple[object, ...]:
    activity = _activity(process)
    alone = process.role not in ("worker", "helper", "unknown") or (process.role == "worker" and "sample" in activity)
    return (process.pid,) if alone else (process.role, activity)


def _name(process: Process) -> str:
    if process.role == "worker":
        return "worker" if process.worker is None else f"worker {process.worker}"
    if process.role == "rank":
        return "rank" if process.rank is None else f"rank {process.rank}"
    if process.role in ("main", "launcher"):
        return str(process.role)
    line = " ".join(process.command)
    for mark, name in _HELPERS.items():
        if mark in line and not process.forked:
            return name
    if process.is_python:
        return "helper"
    return os.path.basename(process.command[0])[:16] if process.command else "?"


def _activity(process: Process) -> str:
    zombie = bool(process.threads) and process.threads[0].state == "Z"
    return "ended (zombie)" if zombie else process_activity(process)


def _cpu(case: Case, group: list[Process]) -> str:
    """Share of a core between the first and the last look, of all in the row together."""
    first, last = case.looks[0], case.looks[-1]
    if last.at - first.at < 0.1:
        return ""
    before = {process.pid: _used(process) for process in first.processes}
    used = sum(_used(process) - before.get(process.pid, _used(process)) for process in group)
    return f"{used / (last.at - first.at):.0%}"


def _used(process: Process) -> float:
    return sum(thread.cpu for thread in process.threads)


def _quiet(page: Page, case: Case) -> None:
    mains = [process for process in _last(case).processes if process.role in ("main", "rank")]
    quiet = min((process.quiet for process in mains if process.quiet is not None), default=None)
    if quiet is not None and quiet >= 60:
        page.blank()
        page.line((f"Its last output was {seconds(quiet)} ago.", "dim"), indent=2)


def _plain(process: Process, case: Case) -> dict[str, Any]:
    frame = process.user_frame
    return {
        "pid": process.pid,
        "parent": process.ppid,
        "role": process.role,
        "name": _name(process),
        "worker": process.worker,
        "rank": process.rank,
        "doing": _activity(process),
        "cpu": _cpu(case, [process]),
        "file": frame.file if frame else None,
        "line": frame.line if frame else None,
        "stacks_by": process.stacks_by,
        "stack": [_plain_frame(frame) for frame in (process.main_thread.frames if process.main_thread else ())],
        "native": list(process.main_thread.native) if process.main_thread else [],
    }


def _plain_frame(frame: Frame) -> dict[str, Any]:
    """Locals only with `--locals`; the few numbers of torch's loader are there anyway."""
    plain: dict[str, Any] = {"file": frame.file, "line": frame.line, "function": frame.function, "code": frame.code}
    return {**plain, "locals": dict(frame.arguments)} if frame.arguments else plain


def _last(case: Case) -> Look:
    return case.looks[-1] if case.looks else Look(0.0)
