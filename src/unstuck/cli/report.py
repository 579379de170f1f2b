"""Show a saved run again, on any machine, without torch.

RUN is a run folder, a run id, a case.json, a report.json, or a folder of
flight files, if nothing else survived. Default: the latest run in .unstuck.
The rules are applied again to the saved data. Several folders, each copied
from another machine, are one run of several ranks.
"""

from __future__ import annotations

import argparse
import sys

from unstuck.cli import parser as parsers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from unstuck.report.saved import Saved


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = parsers.add(subparsers, __doc__, "report")
    parser.add_argument("where", nargs="*", metavar="RUN", help="what to show (default: the latest run in .unstuck)")
    parser.add_argument("--json", action="store_true", help="print the JSON report instead")
    parser.add_argument("--report", metavar="FILE", help="also write the report to FILE (.json)")


def _find(places: list[str]) -> Saved:
    from unstuck.report import saved as saved_runs

    if len(places) < 2:
        return saved_runs.find(*places)
    from unstuck.report.merged import merged, slimmed

    parts = slimmed(saved_runs.find(place) for place in places)
    return saved_runs.Saved(parts[0].source, merged(parts))


def run(args: argparse.Namespace) -> int:
    from unstuck.report import json_report, terminal
    from unstuck.report.screen import Screen
    from unstuck.rules.diagnose import diagnose
    from unstuck.serial import dump_text
    from unstuck.supervise.verdicts import as_reported

    if args.report:
        json_report.check_report_path(args.report)
    saved = _find(args.where)
    diagnosis = diagnose(saved.case)
    if saved.diagnosis is not None:
        diagnosis = as_reported(saved.diagnosis, diagnosis)
    if args.report:
        json_report.write_report(args.report, saved.case, diagnosis)
    if args.json:
        sys.stdout.write(dump_text(json_report.report(saved.case, diagnosis)))
        return 0
    rule = next((finding.rule for finding in diagnosis.findings), None)
    text = terminal.render(
        saved.case,
        diagnosis,
        Screen.of(sys.stdout),
        next_command=f"unstuck explain {rule}" if rule else "",
        live=False,
    )
    sys.stdout.write(text)
    return 0
