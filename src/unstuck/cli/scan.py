"""Check every sample of a training's dataset once.

  unstuck scan [options] train.py [arguments]
  unstuck scan [options] -m package.module [arguments]

The script starts as with `python train.py` and runs until its training loader
is in use: one step. Then unstuck reads every sample that the loader's sampler
can draw, in processes of its own, and ends the script there, together with
its launcher. Ctrl-C shows what was found so far.

Exit code: 1 something was found, 0 nothing.
"""

from __future__ import annotations

import argparse
import sys

from unstuck.cli import parser as parsers
from unstuck.cli.script_command import add_arguments, script_command
from unstuck.errors import UsageError
from unstuck.platforms import refuse_elsewhere

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FOUND = 1
INTERRUPTED = 130


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = parsers.add(subparsers, __doc__, "scan", starts_script=True)
    parser.add_argument("--limit", type=_whole, metavar="N", help="read only the first N samples")
    parser.add_argument("--workers", type=_whole, metavar="N", help="processes that read (default: one per core)")
    parser.add_argument(
        "--seconds-per-sample",
        type=parsers.seconds("--seconds-per-sample takes", "unstuck scan --seconds-per-sample 30 train.py"),
        metavar="S",
        default=10.0,
        help="a sample that takes longer counts as hanging (default: 10)",
    )
    parser.add_argument("--report", metavar="FILE", help="also write the report to FILE (.html, .md or .json)")
    add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    refuse_elsewhere("scan")
    import time

    from unstuck.takeover.bar import Bar, counted
    from unstuck.takeover.script import Script

    if args.report:
        from unstuck.report.report_file import check_report_path

        check_report_path(args.report)
    bar = Bar("unstuck: scanning")

    def show(event: dict[str, Any]) -> None:
        if event["event"] == "progress":
            done, of = event["done"], event["of"]
            bar.show(done / of if of else None, counted(done, of, event["seconds"]))

    options = {
        "function": "scanning.in_script:scan",
        "after_errors": True,
        "limit": args.limit,
        "workers": args.workers,
        "seconds_per_sample": args.seconds_per_sample,
    }
    began = time.monotonic()
    script = Script("scan", script_command(args, "scan", args.python), options, show)
    bar.begin("the script runs until its training loader is in use")
    try:
        script.run(silent=True)  # standard output is for what is found
    finally:
        bar.clear()
    if script.result is None and (script.interrupts or script.status in (-2, INTERRUPTED)):
        return INTERRUPTED
    if script.result is None:
        raise script.nothing()
    for part, why in script.found["off"].items():
        print(f"unstuck: off: {part}: {why}", file=sys.stderr)
    return _show(script.result, script.command, time.monotonic() - began, args.report)


def _show(result: Any, command: list[str], seconds: float, report: str | None) -> int:
    from unstuck.recorder.records.data import Scanned
    from unstuck.report.screen import Screen
    from unstuck.scanning.scan_result import judge
    from unstuck.serial import from_plain

    scan = judge(from_plain(Scanned, result), command, seconds)
    if report:
        from unstuck.report.report_file import write_report

        write_report(report, scan.case, scan.diagnosis)
    sys.stdout.write(scan.text(Screen.of(sys.stdout)))
    return FOUND if scan.findings else 0


def _whole(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise UsageError(
            f"{text!r} is not a number of samples or workers",
            cause="--limit and --workers take a whole number above 0",
            next_command="unstuck scan --limit 10000 train.py",
        )
    return int(text)
