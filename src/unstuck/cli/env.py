"""Show which Python `run` uses, and what works on this machine.

torch is not imported, unless you add --deep.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from unstuck.cli import parser as parsers
from unstuck.cli.first_word import next_step
from unstuck.platforms import refuse_elsewhere

TYPE_CHECKING = False
if TYPE_CHECKING:
    from unstuck.cli.machine import Row


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = parsers.add(subparsers, __doc__, "env")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.add_argument("--python", metavar="PY", help="check this Python (see `unstuck run --help`)")
    parser.add_argument("--deep", action="store_true", help="also import torch and test the recorder's hooks on it")


def run(args: argparse.Namespace) -> int:
    refuse_elsewhere("env")
    from unstuck.cli import machine
    from unstuck.version import __version__

    rows = [*_python(args.python, args.deep), *machine.rows()]
    if args.json:
        from unstuck.serial import dump_text, to_plain

        sys.stdout.write(dump_text({"schema": 1, "version": __version__, "rows": to_plain(rows)}))
    else:
        _show(rows)
    return 0


def _python(explicit: str | None, deep: bool) -> Iterator[Row]:
    from unstuck.cli.interpreter import ask_python, choose_python
    from unstuck.cli.machine import Row

    python, why = choose_python(explicit)
    yield Row("python", python, f"`unstuck run` uses this one: {why}")
    info = ask_python(python)
    if info.trouble:
        yield Row("python version", "unknown", f"cannot be used: {info.trouble}", False)
        return
    meaning = "too old: recording needs 3.10 or newer" if info.too_old else "can be recorded"
    yield Row("python version", info.version, meaning, not info.too_old)
    if info.torch is None:
        yield Row("torch", "not installed", f"there is no training to watch: {python} -m pip install torch", None)
        return
    yield Row("torch", info.torch, "installed (not imported here)")
    if deep:
        yield from _deep(python)


def _deep(python: str) -> Iterator[Row]:
    import importlib.util
    import subprocess

    from unstuck.cli.machine import Row

    selftest = importlib.util.find_spec("unstuck.recorder.selftest")
    questions = {"torch import": ["-c", "import torch; print(torch.__version__)"]}
    if selftest is not None and selftest.origin:
        questions["recorder"] = [selftest.origin]
    print("unstuck: importing torch to test the recorder's hooks on it …", file=sys.stderr)
    for name, words in questions.items():
        try:
            done = subprocess.run(
                [python, *words], capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            yield Row(name, "failed", str(error), False)
            continue
        if done.returncode != 0:
            yield Row(name, "failed", (done.stderr.strip().splitlines()[-1:] or ["it printed nothing"])[0], False)
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
        meaning = f" {page.glyph('dot')} {row.meaning}" if row.meaning else ""
        page.line(row.value, (meaning, "dim"), lead=(f"{page.glyph(glyph)} {row.name.ljust(widest)}", style), indent=1)
    page.blank()
    amiss = [row.name for row in rows if row.ok is False]
    less = [row.name for row in rows if row.ok is None]
    if amiss:
        page.line(f"Does not work here: {', '.join(amiss)}.", indent=1)
    if less:
        page.line(f"Works with limits: {', '.join(less)}.", indent=1)
    if not amiss and not less:
        page.line("Everything works here.", indent=1)
    page.next_command(next_step())
    sys.stdout.write(f"\n{page}")
