"""Loops of a parent that wait for what only its forked children change, each in a copy of its own."""

from __future__ import annotations

from collections.abc import Iterator

from unstuck.model import Case, Finding, Fix, Where
from unstuck.recorder.records import Site
from unstuck.recorder.records.loops import Copied, LoopSnapshot
from unstuck.rules.rule import Rule
from unstuck.text import spot

MIN_READINGS = 3  # in one child, at the first of which the parent's loop still had to go on


def waits_for_copies(rule: Rule, case: Case) -> Iterator[Finding]:
    """Each loop once."""
    named: set[Site] = set()
    for snapshots in _by_child(case):
        last = snapshots[-1]
        for copied in last.copied:
            seen = [each for snapshot in snapshots for each in snapshot.copied if each.loop == copied.loop]
            values = [each.tested.value.text for each in seen]
            if len(seen) >= MIN_READINGS and seen[0].holds and values[0] != values[-1] and copied.loop not in named:
                named.add(copied.loop)
                yield _finding(rule, last, copied, len(seen))


def _by_child(case: Case) -> list[list[LoopSnapshot]]:
    by_pid: dict[int, list[LoopSnapshot]] = {}
    for snapshot in case.loop_snapshots:
        if snapshot.copied:
            by_pid.setdefault(snapshot.pid, []).append(snapshot)
    return list(by_pid.values())


def _finding(rule: Rule, last: LoopSnapshot, copied: Copied, readings: int) -> Finding:
    (file, line, function), name, value = copied.loop, copied.tested.text, copied.tested.value.text
    kind = f"`{copied.owner}` is a plain {copied.type}" if copied.owner != name else f"`{name}` is a plain value"
    enough = "" if copied.holds else ", enough to end the loop"
    return rule.finding(
        severity="error",
        confidence=0.95,
        title=f"the loop at line {line} cannot end: `{name}` is changed only in copies, in other processes",
        evidence=(
            f"the loop is `while {copied.text}`; nothing in this process changes `{name}`",
            f"{kind}, of which each process that is started gets its own copy: process {last.pid} runs `{copied.by}` "
            f"({spot(*copied.site)}), and `{name}` is {value} there{enough}",
            f"read {readings} times in that process, which has made {last.step:,} steps",
        ),
        where=Where(file, line, function),
        fix=Fix(
            "Share what is counted: `multiprocessing.Value('i', 0)`, a tensor after `share_memory_()` or "
            "`multiprocessing.Manager().dict()`, with a lock around each change."
        ),
        seen_by="flight",
        also=(Where(*copied.site, pid=last.pid),),
    )
