"""The result of `tune` as text: what was measured, the choice, what it brings, and what to change."""

from __future__ import annotations

import os
import sys
from typing import Any

from unstuck.report.json_report import relative
from unstuck.report.status import wants_color, wants_unicode, width_of
from unstuck.report.wording import clean, duration
from unstuck.tuning.edit import diff, given_by
from unstuck.tuning.tuned import Row, Training, Tuned


def print_tuned(tuned: Tuned, found: dict[str, Any] | None = None) -> None:
    """On standard output."""
    from rich.console import Console

    stream = sys.stdout
    color, unicode = wants_color(stream), wants_unicode(stream)
    console = Console(
        file=stream,
        width=max(80, width_of(stream)),
        no_color=not color,
        force_terminal=color,
        highlight=False,
        markup=False,
        emoji=False,
    )
    console.print(_table(tuned, unicode))
    for line in sentences(tuned, found or {}):
        console.print(clean(line, unicode), soft_wrap=True)
    change = change_of(tuned, found or {})
    if change:
        console.print()
        for line in change.splitlines():
            style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "") if color else ""
            console.print(clean(line, unicode), style=style or None, soft_wrap=True)


def _table(tuned: Tuned, unicode: bool) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD if unicode else box.ASCII, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("settings", min_width=16)
    for name in ("samples/s", "95 % interval", "to now", "1st batch"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for row in tuned.table:
        style = "bold" if row.chosen else "dim" if row.error else None
        table.add_row(*(clean(cell, unicode) for cell in _cells(row)), style=style)
    return table


def _cells(row: Row) -> tuple[str, ...]:
    mark = " ".join(["now"] * row.present + ["chosen"] * (row.chosen and not row.present))
    if row.error:
        return row.name, "", "", "", "", f"{mark}, failed" if mark else "failed"
    relative = "" if row.relative is None else f"{row.relative:.2f}×"
    interval = f"{_number(row.low)} – {_number(row.high)}"
    return row.name, _number(row.samples_per_second), interval, relative, duration(row.start_up), mark


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
    compute, now, then = (duration(value) for value in (training.compute, training.wait_now, training.wait_then))
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
