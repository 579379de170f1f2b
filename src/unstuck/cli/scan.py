"""Go through the training's whole data set once and say what is odd in it.

  unstuck scan [options] train.py [arguments]
  unstuck scan [options] -m package.module [arguments]

The script runs until its training loader is in use; then its data set is read by processes of unstuck's own, every
sample that the loader's sampler can draw once, and the script is ended there, with whatever started it. Ctrl-C tells
what was seen until then.
Exit status: 0 nothing found, 1 findings."""

from __future__ import annotations

import argparse
import os
import sys

from unstuck.cli import parser as parsers
from unstuck.errors import OwnFault, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from unstuck.recorder.records import ProbeOff
    from unstuck.recorder.records.data import Scanned
    from unstuck.supervise.scanning import Scanning

FOUND = 1
INTERRUPTED = 130


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = parsers.add(subparsers, __doc__, "scan")
    parser.usage = "unstuck scan [options] train.py [arguments]"
    parser.add_argument("--limit", type=_whole, metavar="N", help="look at the first N samples only")
    parser.add_argument("--workers", type=_whole, metavar="N", help="processes that read (default: one a core)")
    parser.add_argument(
        "--seconds-per-sample",
        type=parsers.seconds("--seconds-per-sample takes", "unstuck scan --seconds-per-sample 30 train.py"),
        metavar="S",
        default=10.0,
        help="a sample that takes longer hangs (10)",
    )
    parser.add_argument("--python", metavar="PY", help="the Python to run it with (default: see `unstuck env`)")
    parser.add_argument("--report", metavar="FILE", help="also write the report to FILE (.json)")
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="run a module, as python -m does")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="train.py …", help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    import time

    from unstuck.cli.run import build_command
    from unstuck.supervise import flight_folder
    from unstuck.supervise.scanning import Scanning

    if not args.module and not args.command:
        raise UsageError("no script given", next_command="unstuck scan train.py")
    if not sys.platform.startswith("linux"):
        raise UsageError("unstuck scan needs Linux", next_command="unstuck.scan(dataset) in a script")
    if args.report:
        from unstuck.report.json_report import check_report_path

        check_report_path(args.report)
    try:
        command = build_command(args.module, list(args.command), args.python)
    except UsageError as error:
        error.next_command = error.next_command.replace("unstuck run", "unstuck scan")
        raise
    place, why = flight_folder.make_folder()
    if place is None:
        raise UsageError("no folder to work in", cause=why, next_command="TMPDIR=/some/local/folder unstuck scan …")
    began = time.monotonic()
    options = {"limit": args.limit, "workers": args.workers, "seconds": args.seconds_per_sample}
    script = Scanning(command, place, options)
    try:
        script.run()
        told, faults = _told(place)
    finally:
        flight_folder.remove_folder(place)
    script.die_if_told_to()
    return _say(told, faults, script, time.monotonic() - began, args.report)


def _told(place: str) -> tuple[Scanned | None, list[ProbeOff]]:
    """What was scanned; and faults of ours."""
    from unstuck.observer import journals
    from unstuck.recorder import layout as at
    from unstuck.recorder.records import ProbeOff
    from unstuck.recorder.records.data import Scanned

    told, faults = None, []
    for entry in os.scandir(place):
        if entry.name.endswith((at.SCANNED, at.RECORDS)):
            with open(entry.path, "rb") as file:
                for record in journals.parse(file.read()):
                    if isinstance(record, Scanned):
                        told = record
                    elif isinstance(record, ProbeOff):
                        faults.append(record)
    return told, faults


def _say(told: Scanned | None, faults: list[ProbeOff], script: Scanning, seconds: float, report: str | None) -> int:
    from unstuck.report import terminal
    from unstuck.scanned import judge

    if told is None:
        return _nothing(faults, script)
    for fault in faults:
        print(f"unstuck: off: {fault.probe}: {fault.why}", file=sys.stderr)
    scan = judge(told, script.command, seconds)
    if report:
        from unstuck.report.json_report import write_report

        write_report(report, scan.case, scan.diagnosis)
    out = sys.stdout
    sys.stdout.write(
        scan.text(color=terminal.wants_color(out), width=terminal.width_of(out), unicode=terminal.wants_unicode(out))
    )
    return FOUND if scan.findings else 0


def _nothing(faults: list[ProbeOff], script: Scanning) -> int:
    """Why there is nothing to tell."""
    status, again = script.status, " ".join(script.command[1:])
    if script.interrupts or status in (-2, INTERRUPTED):
        return INTERRUPTED
    mine = [fault.why for fault in faults if fault.probe == "scan"]
    if mine:
        raise OwnFault(
            f"the data set could not be scanned: {mine[0]}",
            cause="a fault of unstuck, or something in this data set or its sampler that it does not know",
            next_command="unstuck env    (and report it with what this prints)",
        )
    if script.found:
        cause = f"it died with {script.how()} while its data set was read"
    else:
        cause = f"it ended with {script.how()} before that" if status else "it iterates no DataLoader"
    raise UsageError(
        "the script came to its end without a data set to scan",
        cause=cause,
        next_command=f"unstuck run {again}" if status else "unstuck.scan(dataset) in a script",
    )


def _whole(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise UsageError(
            f"{text!r} is not a number of samples or workers",
            cause="--limit and --workers take a whole number above 0",
            next_command="unstuck scan --limit 10000 train.py",
        )
    return int(text)
