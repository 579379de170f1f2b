"""Show a saved run again, on any machine, without torch.

RUN is a run folder, a run id, a case.json, a report.json, or a folder of
flight files, if nothing else survived. Default: the latest run in .unstuck.
The rules are applied again to the saved data. Several folders, each copied
from another machine, are one run of several ranks.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

from unstuck.cli import parser as parsers

PAGE = "report.html"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from unstuck.report.saved import Saved


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = parsers.add(subparsers, __doc__, "report")
    parser.add_argument("where", nargs="*", metavar="RUN", help="what to show (default: the latest run in .unstuck)")
    parser.add_argument("--json", action="store_true", help="print the JSON report instead")
    parser.add_argument("-o", "--report", metavar="FILE", help="also write the report to FILE (.html, .md or .json)")
    parser.add_argument(
        "--open", action="store_true", help="show it in your browser (without -o: as report.html of the run)"
    )
    parser.add_argument(
        "--redact",
        action="store_true",
        help="leave paths, arguments, addresses and quoted values out of what is written",
    )


def _find(places: list[str]) -> Saved:
    from unstuck.report import saved as saved_runs

    if len(places) < 2:
        return saved_runs.find(*places)
    from unstuck.report.merged import merged, slimmed

    parts = slimmed(saved_runs.find(place) for place in places)
    return saved_runs.Saved(parts[0].source, merged(parts))


def run(args: argparse.Namespace) -> int:
    from unstuck.report import terminal, wording
    from unstuck.report.report_file import check_report_path, report_text, write_report
    from unstuck.report.screen import Screen
    from unstuck.rules.diagnose import diagnose
    from unstuck.supervise.verdicts import as_reported

    if args.report:
        check_report_path(args.report)
    saved = _find(args.where)
    diagnosis = diagnose(saved.case)
    if saved.diagnosis is not None:
        diagnosis = as_reported(saved.diagnosis, diagnosis)
    file = args.report or (_beside(saved.source) if args.open else None)
    if file:
        write_report(file, saved.case, diagnosis, redact=args.redact, series=saved.series)
        _say_where(file, args.open)
    if args.json:
        sys.stdout.write(report_text(".json", saved.case, diagnosis, redact=args.redact, series=saved.series))
        return 0
    rule = next((finding.rule for finding in diagnosis.findings), None)
    text = terminal.render(
        saved.case,
        diagnosis,
        Screen.of(sys.stdout),
        next_command=f"unstuck explain {rule}" if rule else wording.again(saved.case) or "unstuck explain",
        live=False,
    )
    sys.stdout.write(text)
    return 0


def _beside(source: Path) -> str:
    """Where the page of a run goes if nothing else is said: into its folder, or a temporary one if that is not ours."""
    folder = source if source.is_dir() else source.parent
    if os.access(folder, os.W_OK):
        return str(folder / PAGE)
    return os.path.join(tempfile.mkdtemp(prefix="unstuck-report-"), PAGE)


def _say_where(file: str, wanted: bool) -> None:
    path = os.path.abspath(file)
    shown = wanted and _open(f"file://{quote(path)}")
    print(f"unstuck: {'opened' if shown else 'the report is in'} {path}", file=sys.stderr)
    if wanted and not shown:
        print("unstuck: no browser here; copy that file to where there is one: it needs nothing else", file=sys.stderr)


def _open(address: str) -> bool:
    """A text browser would take the terminal: only where there is a screen, or one was named."""
    if sys.platform.startswith("linux") and not {"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"} & os.environ.keys():
        return False
    import webbrowser

    return webbrowser.open(address)
