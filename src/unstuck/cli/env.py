"""Show which Python `run` would use, and what can be seen and done on this machine.

Nothing is imported from torch unless --deep is given."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from unstuck.cli import parser as parsers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from unstuck.cli.machine import Row


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = parsers.add(subparsers, __doc__, "env")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.add_argument("--python", metavar="PY", help="ask about this Python, as for run")
    parser.add_argument("--deep", action="store_true", help="import torch too, and try the recorder's hooks on it")


def run(args: argparse.Namespace) -> int:
    from unstuck.cli import machine, sight
    from unstuck.version import __version__

    rows = [*_python(args.python, args.deep), *machine.rows(), *sight.rows()]
    if args.json:
        from unstuck.serial import dump_text, to_plain

        sys.stdout.write(dump_text({"schema": 1, "version": __version__, "rows": to_plain(rows)}))
    else:
        _show(rows)
    return 0


def _python(explicit: str | None, deep: bool) -> Iterator[Row]:
    from unstuck.cli.ask import ask_python
    from unstuck.cli.interpreter import choose_python
    from unstuck.cli.machine import Row

    python, why = choose_python(explicit)
    yield Row("python", python, f"`unstuck run` starts this one: {why}")
    answer = ask_python(python)
    if answer.trouble:
        yield Row("python version", "unknown", f"it cannot be used: {answer.trouble}", False)
        return
    old = tuple(int(part) for part in answer.version.split(".")[:2]) < (3, 10)
    meaning = "too old to be recorded (3.10 or newer is)" if old else "can be recorded"
    yield Row("python version", answer.version, meaning, not old)
    if answer.torch is None:
        yield Row("torch", "not installed", f"no training to watch there: {python} -m pip install torch", None)
        return
    yield Row("torch", answer.torch, "found by its metadata, not imported")
    if deep:
        yield from _deep(python)


def _deep(python: str) -> Iterator[Row]:
    import importlib.util
    import subprocess

    from unstuck.cli.machine import Row

    found = importlib.util.find_spec("unstuck.recorder.selftest")
    questions = {"torch import": ["-c", "import torch; print(torch.__version__)"]}
    if found is not None and found.origin:
        questions["recorder"] = [found.origin]
    for name, words in questions.items():
        try:
            done = subprocess.run(
                [python, *words], capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            yield Row(name, "failed", str(error), False)
            continue
        if done.returncode != 0:
            yield Row(name, "failed", (done.stderr.strip().splitlines()[-1:] or ["it said nothing"])[0], False)
        for line in done.stdout.strip().splitlines():
            yield Row(name, line, "", done.returncode == 0)


def _show(rows: list[Row]) -> None:
    from unstuck.report.page import Page
    from unstuck.report.screen import Screen

    page = Page(Screen.of(sys.stdout))
    marks = {True: ("recovered", "green"), None: ("warning", "yellow"), False: ("error", "red")}
    widest = max(len(row.name) for row in rows) + 2
    for row in rows:
        glyph, style = marks[row.ok]
        meaning = f"  {row.meaning}" if row.meaning else ""
        page.line(row.value, (meaning, "dim"), lead=(f"{page.glyph(glyph)} {row.name.ljust(widest)}", style), indent=1)
    page.blank()
    amiss = [row.name for row in rows if row.ok is False]
    less = [row.name for row in rows if row.ok is None]
    if amiss:
        page.line(f"Will not work here as it should: {', '.join(amiss)}.", indent=1)
    if less:
        page.line(f"Works with less: {', '.join(less)}.", indent=1)
    if not amiss and not less:
        page.line("Everything works here.", indent=1)
    sys.stdout.write(f"\n{page}")
