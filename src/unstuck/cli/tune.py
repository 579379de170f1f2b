"""Find the fastest DataLoader settings for a training.

  unstuck tune [options] train.py [arguments]
  unstuck tune [options] -m package.module [arguments]

The script starts as with `python train.py` and runs until its training loader
is in use: a few steps. Then unstuck measures that loader with other settings,
in the same process, and ends the script there, together with its launcher. It
does not go on to train and writes no checkpoint. (A script that finishes
within those few steps runs to its end first.)

No file is changed: the result is a table and a diff. Ctrl-C ends the search
and shows the best settings so far.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys

from unstuck.cli import parser as parsers
from unstuck.cli.script_command import add_arguments, script_command
from unstuck.platforms import refuse_elsewhere

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from unstuck.takeover.bar import Bar

DEFAULT_SECONDS = 60.0


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = parsers.add(subparsers, __doc__, "tune", starts_script=True)
    parser.add_argument(
        "--seconds",
        type=parsers.seconds("--seconds takes", "unstuck tune --seconds 120 train.py", most=999_999.0),
        metavar="S",
        help="search for S seconds at most (default: 60)",
    )
    add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    refuse_elsewhere("tune")
    from unstuck.cli.settings import Settings
    from unstuck.serial import from_plain
    from unstuck.takeover.bar import Bar
    from unstuck.takeover.script import Script
    from unstuck.tuning.tune_page import print_tuned
    from unstuck.tuning.tuned import Tuned

    settings = Settings()
    for note in settings.notes:
        print(f"unstuck: {note}", file=sys.stderr)
    seconds = settings.value("tune-seconds", "seconds", args.seconds) or DEFAULT_SECONDS
    command = script_command(args, "tune", settings.value("python", "text", args.python) or None)
    bar = Bar("unstuck: measuring", first=0.0)
    options = {"function": "tuning.session:tune_in_script", "step": True, "seconds": seconds}
    script = Script("tune", command, options, lambda event: _show(event, bar, seconds))
    bar.begin("the script runs until its training loader is in use")
    try:
        script.run()
    finally:
        bar.clear()
    if args.verbose and script.fault:
        print(script.fault.get("traceback", ""), file=sys.stderr)
    tuned = from_plain(Tuned, script.result) if script.result is not None else None
    if script.fault or tuned is None or not any(row.samples_per_second for row in tuned.table):
        if script.interrupts and not script.fault:
            raise KeyboardInterrupt
        raise script.nothing(next((row.error for row in tuned.table if row.error), "") if tuned else "")
    print_tuned(tuned, script.found)
    print(f"\n  next: unstuck run {shlex.join(command[1:])}")
    return 0


def _show(event: dict[str, Any], bar: Bar, seconds: float) -> None:
    if event["event"] == "found":
        from unstuck.report.json_report import relative

        built_at = event["built_at"]
        where = f" built at {relative(built_at[0], os.getcwd())}:{built_at[1]}" if built_at else ""
        what = "training loader" if event["trains"] else "loader"
        bar.line(f"measuring the {what} of {event['dataset']}{where}; the script does not go on (Ctrl-C: best so far)")
    elif event["event"] == "progress":
        elapsed, best = event["elapsed"], f"{event['best']}, {event['rate']:,.0f} samples/s"
        bar.show(elapsed / seconds, f"{elapsed:.0f} of {seconds:.0f} s: {event['now']}; best so far: {best}")
