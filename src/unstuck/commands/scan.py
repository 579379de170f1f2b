"""Go through the training's whole data set once and say what is odd in it.

  unstuck scan [options] train.py [arguments]
  unstuck scan [options] -m package.module [arguments]

The script runs until its training loader is in use; then its data set is read by processes of unstuck's own, every
sample once, and the script is ended. Ctrl-C tells what was seen until then.
Exit status: 0 nothing found, 1 findings."""

from __future__ import annotations

import argparse
import os
import sys

from unstuck.commands import parser as parsers
from unstuck.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from unstuck.model import Fact

FOUND = 1
INTERRUPTED = 130


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = parsers.add(subparsers, __doc__, "scan")
    parser.usage = "unstuck scan [options] train.py [arguments]"
    parser.add_argument("--limit", type=_whole, metavar="N", help="look at the first N samples only")
    parser.add_argument("--workers", type=_whole, metavar="N", help="processes that read (default: one a core)")
    parser.add_argument(
        "--seconds-per-sample", type=_seconds, metavar="S", default=10.0, help="a sample that takes longer hangs (10)"
    )
    parser.add_argument("--python", metavar="PY", help="the Python to run it with (default: see `unstuck env`)")
    parser.add_argument("--report", metavar="FILE", help="also write the report to FILE (.json)")
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="run a module, as python -m does")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="train.py …", help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    import time

    from unstuck.commands.run import build_command
    from unstuck.supervise import hangar

    if not args.module and not args.command:
        raise UsageError("no script given", next_command="unstuck scan train.py")
    if not sys.platform.startswith("linux"):
        raise UsageError("unstuck scan needs Linux", next_command="unstuck.scan(dataset) in a script")
    if args.report:
        from unstuck.render.json_report import check_report_path

        check_report_path(args.report)
    command = build_command(args.module, list(args.command), args.python)
    place, why = hangar.make_folder()
    if place is None:
        raise UsageError("no folder to work in", cause=why, next_command="TMPDIR=/some/local/folder unstuck scan …")
    began = time.monotonic()
    try:
        status = _run_script(command, place, args)
        told = _told(place)
    finally:
        hangar.remove_folder(place)
    return _say(told, status, command, time.monotonic() - began, args.report)


def _run_script(command: list[str], place: str, args: argparse.Namespace) -> int:
    """Until it has scanned or ended. Ctrl-C goes to it as well: it is what is asked to tell."""
    import json
    import signal
    import subprocess

    from unstuck.supervise import child

    options = {"limit": args.limit, "workers": args.workers, "seconds": args.seconds_per_sample}
    env = {**child.environment(place), "UNSTUCK_SCAN": json.dumps(options)}
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = subprocess.Popen(
            command, env=env, stdout=subprocess.DEVNULL, preexec_fn=lambda: signal.signal(signal.SIGINT, before)
        )
        return process.wait()
    finally:
        signal.signal(signal.SIGINT, before)


def _told(place: str) -> Fact | None:
    from unstuck.record import layout as at
    from unstuck.record.reader import parse_facts

    _note_faults(place)
    for entry in os.scandir(place):
        if entry.name.endswith(at.SCANNED):
            with open(entry.path, "rb") as file:
                return next(parse_facts(file.read()), None)
    return None


def _note_faults(place: str) -> None:
    from unstuck.record import layout as at
    from unstuck.record.reader import parse_facts

    for entry in os.scandir(place):
        if entry.name.endswith(at.FACTS):
            with open(entry.path, "rb") as file:
                for fact in parse_facts(file.read()):
                    if fact.kind == "probe-off":
                        print(f"unstuck: {fact.data['probe']} is off: {fact.data['why']}", file=sys.stderr)


def _say(told: Fact | None, status: int, command: list[str], seconds: float, report: str | None) -> int:
    from unstuck.render import terminal
    from unstuck.scanned import judge

    if told is None:
        if status in (-2, INTERRUPTED):
            return INTERRUPTED
        cause = f"it ended with status {status} before that" if status else "it iterates no DataLoader"
        raise UsageError(
            "the script came to its end without a data set to scan",
            cause=cause,
            next_command="unstuck run train.py" if status else "unstuck.scan(dataset) in a script",
        )
    scan = judge(told.data["loaders"][0], told.pid, command, seconds)
    if report:
        from unstuck.render.json_report import write_report

        write_report(report, scan.case, scan.diagnosis)
    out = sys.stdout
    sys.stdout.write(
        scan.text(color=terminal.wants_color(out), width=terminal.width_of(out), unicode=terminal.wants_unicode(out))
    )
    return FOUND if scan.findings else 0


def _whole(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise UsageError(
            f"{text!r} is not a number of samples or workers",
            cause="--limit and --workers take a whole number above 0",
            next_command="unstuck scan --limit 10000 train.py",
        )
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1e7:
        raise UsageError(
            f"{text!r} is not a number of seconds",
            cause="--seconds-per-sample takes a number above 0",
            next_command="unstuck scan --seconds-per-sample 30 train.py",
        )
    return value
