"""Explain a training that is already running or hanging.

  unstuck attach PID     look at the process and everything below it: why it
                         is stuck, or what it is doing
  unstuck attach         list the trainings on this machine; if there is only
                         one, look at it

Nothing has to be prepared. The training is only read, never stopped or
changed (--native pauses each process for some milliseconds). PID can be the
script, its launcher, a rank or a worker.

Exit code: 1 a cause was found; 0 none: it is running, or the cause cannot be
seen from outside.
"""

from __future__ import annotations

import argparse
import os
import sys

from unstuck.cli import parser as parsers
from unstuck.errors import UsageError
from unstuck.platforms import refuse_elsewhere

TYPE_CHECKING = False
if TYPE_CHECKING:
    from unstuck.attach.inspection import Answer, Inspection
    from unstuck.attach.state import State

DAY = 86_400.0
PAUSE_SECONDS = 5.0  # between two inspections of `--watch`: a look costs the machine some hundredths of a second


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = parsers.add(subparsers, __doc__, "attach")
    parser.add_argument("pid", nargs="?", metavar="PID", help="process to look at (default: the only training)")
    parser.add_argument(
        "--seconds",
        type=parsers.seconds("--seconds takes", "unstuck attach --seconds 10 4711", most=DAY),
        metavar="S",
        help="watch it for S seconds (default: 3, and up to 31 while nothing moves and the cause is not certain)",
    )
    parser.add_argument("--watch", action="store_true", help="keep watching, and report every change; Ctrl-C ends it")
    parser.add_argument("--json", action="store_true", help="print the JSON report instead")
    parser.add_argument("--report", metavar="FILE", help="also write the report to FILE (.html, .md or .json)")
    parser.add_argument("--native", action="store_true", help="show native frames too; pauses each process briefly")
    parser.add_argument("--locals", action="store_true", help="show the local variables of every frame")


def run(args: argparse.Namespace) -> int:
    refuse_elsewhere("attach")
    from unstuck.attach.inspection import SECONDS, Inspection
    from unstuck.attach.target import resolve
    from unstuck.report.report_file import check_report_path

    if args.report:
        check_report_path(args.report)
    if args.pid is None:
        pid = _only_candidate(args.json)
        if pid is None:
            if args.report:
                raise UsageError(
                    "no report was written: several trainings are running",
                    next_command="unstuck attach PID --report FILE",
                )
            return 0
    else:
        pid = _pid(args.pid)
    seconds = (args.seconds or SECONDS) if args.watch else args.seconds
    inspection = Inspection(resolve(pid), seconds=seconds, native=args.native, every_local=args.locals)
    _end_in_order()
    return _watch(inspection, args) if args.watch else _look(inspection, args)


def _look(inspection: Inspection, args: argparse.Namespace) -> int:
    """Once; what it waits for is said in one line, at a terminal only."""
    from unstuck.attach.state import doing, state_of
    from unstuck.takeover.bar import Bar

    bar = Bar("unstuck:", quiet=not os.isatty(2))

    def tell(answer: Answer) -> None:
        bar.show(None, f"no movement for {answer.seconds:.0f} s ({doing(answer)}); Ctrl-C shows what is known")

    looking = f"looking at process {inspection.target.pid} for {inspection.seconds:g} s"
    bar.show(None, f"{looking}; Ctrl-C shows what is known")
    try:
        answer = inspection.run(tell)
    finally:
        bar.clear()
    _show_answer(answer, state_of(answer), args)
    return 1 if answer.loud else 0


def _end_in_order() -> None:
    """A signal that ends us must not leave py-spy running."""
    import signal

    def leave(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, leave)


def _watch(inspection: Inspection, args: argparse.Namespace) -> int:
    """Until the run ends or Ctrl-C; the exit code says whether it was stuck at the last look."""
    import time

    from unstuck.attach.state import state_of

    before: tuple[object, ...] | None = None
    loud = False
    try:
        while True:
            answer = inspection.again()
            state = state_of(answer)
            if _identity(answer, state) != before:
                before = _identity(answer, state)
                _show_answer(answer, state, args)
            loud = answer.loud
            if answer.ended or answer.interrupted:
                break
            time.sleep(PAUSE_SECONDS)
    except KeyboardInterrupt:
        pass
    return 1 if loud else 0


def _identity(answer: Answer, state: State) -> tuple[object, ...]:
    """What makes a state another one: its kind, its cause, and what the training is doing, but not the exact line."""
    from unstuck.attach.state import doing

    if answer.loud:
        cause = answer.diagnosis.findings[0]
        return state.kind, cause.rule, cause.where.pid, cause.where.sample
    return state.kind, "" if state.kind == "running" else doing(answer).partition(" (")[0]


def _show_answer(answer: Answer, state: State, args: argparse.Namespace) -> None:
    import json

    from unstuck.attach import attach_page
    from unstuck.report.report_file import write_report
    from unstuck.report.screen import Screen
    from unstuck.serial import dump_text, write_whole

    if args.report and args.report.lower().endswith(".json"):
        write_whole(args.report, dump_text(attach_page.as_json(answer, state)))
    elif args.report:
        write_report(args.report, answer.case, answer.diagnosis)
    if args.json:
        text = dump_text(attach_page.as_json(answer, state))
        if args.watch:  # one line a report
            text = json.dumps(json.loads(text)) + "\n"
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    sys.stdout.write(attach_page.render(answer, state, Screen.of(sys.stdout), _next(answer, state)))


def _next(answer: Answer, state: State) -> str:
    from unstuck.attach.access import way_in

    if answer.diagnosis.findings:
        return f"unstuck explain {answer.diagnosis.findings[0].rule}"
    if state.kind == "blind":
        return way_in(answer.case.looks[-1]).command
    return "unstuck attach" if state.kind == "ended" else f"unstuck attach {answer.case.root} --watch"


def _only_candidate(as_json: bool) -> int | None:
    from unstuck.attach.access import as_root
    from unstuck.attach.candidates import candidates, hidden, show

    found = candidates()
    if not found:
        others = hidden()
        raise UsageError(
            "no training is running here that can be looked at",
            cause="no Python process of yours has torch loaded (any other can be looked at by its pid)"
            + (f"; {others} of other users are hidden" if others else ""),
            next_command=as_root() if others else "unstuck attach PID",
        )
    if len(found) == 1:
        return found[0].pid
    show(found, as_json)
    return None


def _pid(text: str) -> int:
    if text.isdigit() and 0 < int(text) < 1 << 31:
        return int(text)
    raise UsageError(
        f"{text} is not a pid",
        cause="attach takes the number of a process, not a name or a script",
        next_command="unstuck attach",
    )
