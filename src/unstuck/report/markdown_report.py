"""The report as Markdown, to be pasted into a bug report: the answer, the evidence, the line, the fix."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

# What would become a heading, a link, a tag or a table of somebody else's.
_SPECIAL = re.compile(r"([\\<>\[\]|#*_~])")


def markdown(view: dict[str, Any]) -> str:
    lines = list(_report(view))
    return "\n".join(lines).encode("utf-8", "backslashreplace").decode() + "\n"


def _report(view: dict[str, Any]) -> Iterator[str]:
    yield f"## {_plain(view['verdict']['title'])}"
    yield ""
    yield " · ".join(filter(None, [f"`{_code(view['program'])}`", view["outcome"], view["progress"]]))
    if view["verdict"]["labels"]:
        yield ""
        yield " · ".join(map(_plain, view["verdict"]["labels"]))
    if view["primary"]:
        yield from _finding(view["primary"])
    for finding in view["others"]:
        yield from ["", f"### {_plain(finding['title'])}", "", f"`{finding['rule']}` · {finding['sure']}"]
        yield from _finding(finding)
    yield from _section("What would settle it", view["questions"])
    yield from _section("Withdrawn", [f"{item['title']} {item['why_withdrawn']}" for item in view["withdrawn"]])
    yield from _section("Healed", view["healed"])
    if not view["primary"]:
        yield from _section("What was watched", [f"{name}: {value}" for name, value in view["watched"]])
    yield from _section("Where the time went", [f"{p['words']}: {p['percent']} %" for p in view["phases"]])
    yield from _section("What could not be seen", view["unseen"][:6])
    yield from _section("Machine", [f"{name}: {value}" for name, value in view["machine"]])
    yield from _stacks(view["stacks"])
    yield from ["", f"unstuck {view['version']}: `{_code(' '.join(view['command']))}`"]


def _finding(finding: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield from (f"- {_plain(line)}" for line in finding["evidence"])
    if finding["verified"]:
        yield f"- proven: {_plain(finding['verified'])}"
    for spot in finding["spots"]:
        yield from [
            "",
            " · ".join([f"**{_plain(spot['location'])}**" if spot["location"] else "", *spot["who"]]).strip(" ·"),
        ]
        if spot["lines"]:
            width = len(str(spot["lines"][-1][0]))
            rows = [f"{'>' if marked else ' '} {number:>{width}} | {text}" for number, text, marked in spot["lines"]]
            yield from _fenced("", rows)
    if finding["fix"]:
        yield from ["", f"**Fix.** {_plain(finding['fix'])}"]
    if finding["diff"]:
        yield from _fenced("diff", finding["diff"].splitlines())
    yield from _section("What follows from it", finding["consequences"])


def _stacks(processes: list[dict[str, Any]]) -> Iterator[str]:
    named = [process for process in processes if process["named"]] or processes
    rows = []
    for process in named[:4]:
        for thread in process["threads"][:2]:
            rows.append(f"{process['name']} (pid {process['pid']}), thread {thread['name']}")
            frames = thread["user"] or thread["all"][:6]
            rows += [f"    {place} in {function}  {code}".rstrip() for place, function, code, _ in frames]
    if rows:
        yield from ["", "<details><summary>Stacks, innermost first</summary>"]
        yield from _fenced("", rows)
        yield from ["", "</details>"]


def _section(heading: str, items: list[str]) -> Iterator[str]:
    if items:
        yield from ["", f"**{heading}**", "", *(f"- {_plain(item)}" for item in items)]


def _fenced(language: str, rows: list[str]) -> Iterator[str]:
    longest = max((len(run) for row in rows for run in re.findall("`+", row)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from ["", fence + language, *rows, fence]


def _plain(text: str) -> str:
    """As it reads, with `code` left as it is."""
    parts = text.replace("\n", " ").split("`")
    balanced = len(parts) % 2 == 1
    return "`".join(part if n % 2 and balanced else _SPECIAL.sub(r"\\\1", part) for n, part in enumerate(parts))


def _code(text: str) -> str:
    return text.replace("`", "'").replace("\n", " ")
