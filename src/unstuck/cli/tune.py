"""Find the fastest settings for the DataLoader of a training

  unstuck tune [options] train.py [arguments]
  unstuck tune [options] -m package.module [arguments]

The script is started as `python train.py` would, until its training loader is in use: a few steps. Then its loader
alone is measured with other settings, in that very process, and the script is ended there, with all that started it;
it does not go on to train, and nothing it would do at its end is done. Only a script that is over after those few
steps runs to its end first, and saves what it saves. No file is changed: the change is shown as a diff.
Ctrl-C ends the search and shows the best so far.
"""

from __future__ import annotations

import argparse
import sys

from unstuck.cli import parser as parsers
from unstuck.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SECONDS = 60.0
OLDEST = (3, 10)


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = parsers.add(subparsers, __doc__, "tune")
    parser.usage = "unstuck tune [options] train.py [arguments]"
    parser.add_argument(
        "--seconds",
        type=parsers.seconds("--seconds takes", "unstuck tune --seconds 120 train.py", most=999_999.0),
        metavar="S",
        help="how long to search, at most (default 60)",
    )
    parser.add_argument("--python", metavar="PY", help="interpreter to run the script with (see `unstuck env`)")
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="run a module, as python -m does")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="train.py …", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    from unstuck.cli.settings import Settings
    from unstuck.supervise.tuning import Tuning
    from unstuck.tuning.page import print_tuned

    settings = Settings()
    seconds = settings.number("tune-seconds", args.seconds, SECONDS) or SECONDS
    command = _command(args, settings.text("python", args.python, "") or None)
    bar = Bar(seconds)
    tuning = Tuning(command, seconds, bar.show)
    try:
        tuned = tuning.run()
    finally:
        bar.end()
        if args.verbose and tuning.fault:
            print(tuning.fault.get("traceback", ""), file=sys.stderr)
    print_tuned(tuned, tuning.found)
    return 0


def _command(args: argparse.Namespace, python: str | None) -> list[str]:
    from unstuck.cli.run import build_command

    words = list(args.command)
    if not args.module and not words:
        raise UsageError("no script given", next_command="unstuck tune train.py")
    if words[:1] == ["--"]:
        raise UsageError(
            "tune starts a Python script, not another command",
            cause="with several ranks each has a loader of its own; one of them is enough to be tuned",
            next_command="unstuck tune train.py",
        )
    try:
        command = build_command(args.module, words, python)
    except UsageError as error:
        error.next_command = error.next_command.replace("unstuck run", "unstuck tune")
        raise
    _check(command[0])
    return command


def _check(python: str) -> None:
    """An interpreter that is too old would run the whole training, unmeasured."""
    from unstuck.cli.ask import ask_python

    version = ask_python(python).version if "python" in python.rpartition("/")[2] else ""
    if version and tuple(map(int, version.split(".")[:2])) < OLDEST:
        raise UsageError(
            f"cannot tune with Python {version}",
            cause=f"{python} is older than 3.10",
            next_command="unstuck tune --python PY train.py    (another interpreter, with torch)",
        )


class Bar:
    """Progress on standard error: a bar on a terminal, elsewhere a line now and then."""

    EVERY = 10.0

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._progress: Any = None
        self._task: Any = None
        self._said = -self.EVERY

    def show(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "found":
            self._line(_found(event))
        elif kind == "progress":
            doing = f"{event['now']}; best so far: {event['best']}, {event['rate']:,.0f} samples/s"
            if _on_terminal():
                self._draw(event["elapsed"], doing)
            elif event["elapsed"] - self._said >= self.EVERY:
                self._said = event["elapsed"]
                self._line(f"{event['elapsed']:.0f} of {self._seconds:.0f} s: {doing}")

    def end(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def _draw(self, elapsed: float, doing: str) -> None:
        if self._progress is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("unstuck: measuring"), BarColumn(24), TimeRemainingColumn())
            self._progress = Progress(
                *columns,
                TextColumn("{task.description}", markup=False),
                console=Console(stderr=True, highlight=False),
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._task = self._progress.add_task(doing, total=self._seconds)
            self._progress.start()
        self._progress.update(self._task, completed=min(elapsed, self._seconds), description=doing)

    @staticmethod
    def _line(text: str) -> None:
        try:
            print(f"unstuck: {text}", file=sys.stderr, flush=True)
        except (OSError, ValueError, AttributeError):
            pass


def _found(event: dict[str, Any]) -> str:
    from unstuck.tuning.edit import shown

    site = event.get("site")
    where = f" built at {shown(site[0])}:{site[1]}" if site else ""
    what = "training loader" if event.get("trains") else "loader"
    return f"the {what} of {event['dataset']}{where} is measured now; the script does not go on (Ctrl-C: best so far)"


def _on_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except (ValueError, AttributeError):
        return False
