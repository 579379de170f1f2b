"""The result of `tune` as text: what was measured, the choice, what it brings, and what to change."""

from __future__ import annotations

import os
import sys
from typing import Any

from unstuck.report.json_report import relative
from unstuck.report.page import Page, Piece
from unstuck.report.screen import Screen
from unstuck.text import seconds
from unstuck.tuning.edit import diff, given_by
from unstuck.tuning.tuned import Row, Training, Tuned


def print_tuned(tuned: Tuned, found: dict[str, Any] | None = None) -> None:
    """On standard output."""
    page = Page(Screen.of(sys.stdout))
    head = ("samples/s", "95 % interval", "to now", "1st batch", "settings")
    page.table(head, (_cells(row) for row in tuned.table), indent=0)
    page.blank()
    for line in sentences(tuned, found or {}):
        page.line(line)
    change = change_of(tuned, found or {})
    if change:
        page.blank()
        page.diff(change)
    sys.stdout.write(f"\n{page}")


def _cells(row: Row) -> list[Piece]:
    marks = ["now"] * row.present + ["chosen"] * (row.chosen and not row.present) + ["failed"] * bool(row.error)
    name = f"{row.name} ({', '.join(marks)})" if marks else row.name
    if row.error:
        return [(cell, "dim") for cell in ("", "", "", "", name)]
    relative = "" if row.relative is None else f"{row.relative:.2f}×"
    interval = f"{_number(row.low)} – {_number(row.high)}"
    style = "bold" if row.chosen else ""
    cells = (_number(row.samples_per_second), interval, relative, seconds(row.start_up), name)
    return [(cell, style) for cell in cells]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def sentences(tuned: Tuned, found: dict[str, Any]) -> list[str]:
    """The choice and what it brings, in sentences."""
    early = " (stopped early: the best so far)" if tuned.interrupted else ""
    lines = [f"{row.name}: {row.error}" for row in tuned.table if row.error]
    if tuned.keep:
        lines.append(f"Keep what you have{early}. {tuned.why}")
    else:
        chosen = next((row.name for row in tuned.table if row.chosen), "")
        measured = any(row.present and not row.error for row in tuned.table)
        gain = [f"The loader alone: {tuned.gain:.2f}× as fast."] if measured else []
        lines.append(" ".join([f"Choice: {chosen}{early}.", *gain, *([tuned.why] if tuned.why else [])]))
    if tuned.training is not None:
        lines += _training(tuned.training, tuned.keep)
    elif found and not found.get("trains"):
        lines.append("No training step was seen: the loader that gave most batches was measured.")
    return [*lines, *tuned.notes]


def _training(training: Training, keep: bool) -> list[str]:
    compute, now, then = (seconds(value) for value in (training.compute, training.wait_now, training.wait_then))
    if keep:
        return [f"A step computes for {compute} and waits {now} for data."]
    end = "data would still limit it" if training.limited else "data would no longer limit it"
    return [
        f"A step computes for {compute}; its wait for data: {now} now, {then} then. "
        f"The whole training would be {training.speedup:.2f}× as fast; {end}."
    ]


def change_of(tuned: Tuned, found: dict[str, Any]) -> str:
    """The diff; or what to set, where it cannot be placed."""
    if tuned.keep:
        return ""
    notes = []
    site = found.get("built_at")
    call = (site[0], site[1], found.get("built_by", "DataLoader"), tuned.changes) if site and tuned.changes else None
    made = diff(*call) if call else None
    if made is None and tuned.changes:
        where = f" built at {relative(site[0], os.getcwd())}:{site[1]}" if site else ""
        given = ", ".join(f"{name}={value!r}" for name, value in tuned.changes.items())
        notes.append(f"Set for the DataLoader{where}: {given}")
        for name, expression in (given_by(*call) if call else {}).items():
            notes.append(f"There {name} is {expression}: let that be {tuned.changes[name]!r}.")
    if tuned.changes and found.get("built", 1) > 1:
        notes.append(f"That line builds {found['built']} loaders, for different data: a change is for all of them.")
    if tuned.threads > 1:
        notes.append(f"In its worker_init_fn: torch.set_num_threads({tuned.threads})")
    return "\n".join([*([made.rstrip("\n")] if made else []), *notes])
