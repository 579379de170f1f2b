"""Run a training and say why it is stuck.

  unstuck run [options] train.py [arguments]
  unstuck run [options] -m package.module [arguments]
  unstuck run [options] -- torchrun --nproc-per-node 2 train.py

The script runs as with `python train.py`: same arguments, working directory,
standard input, terminal and exit code. unstuck writes to standard error, and
only when it has something to say.
"""

from __future__ import annotations

import os
import sys

from unstuck.cli.options import OPTIONS, Given
from unstuck.errors import UsageError
from unstuck.platforms import can_watch, what_works

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from unstuck.cli import parser as parsers
    from unstuck.cli.script_command import add_arguments

    parser = parsers.add(subparsers, __doc__, "run", starts_script=True)
    parser.epilog = (
        "Every option can also be set in the environment (UNSTUCK_ON_HANG=stop) or in\n"
        '[tool.unstuck] of pyproject.toml (on-hang = "stop").'
    )
    for option in OPTIONS:
        option.add_to(parser)
    add_arguments(parser, python=False)


def run(args: argparse.Namespace | Given) -> int:
    from unstuck.cli.script_command import build_command
    from unstuck.cli.settings import Settings

    settings = Settings()
    values = {option.name: option.resolve(settings, getattr(args, option.name)) for option in OPTIONS}
    command = build_command(args.module, list(args.command), values.pop("python"))
    if not can_watch():
        return _unwatched(command)
    if values["report"] is not None:
        from unstuck.report.report_file import check_report_path

        values["report"] = _absolute(values["report"])
        check_report_path(values["report"])
    for note in settings.notes:
        print(f"unstuck: {note}", file=sys.stderr)
    if values["restart"] and "hang" in values["restart_on"] and values["on_hang"] == "report":
        values["on_hang"] = "stop"  # only a run that has ended can be started again
    from unstuck.report import store
    from unstuck.supervise import Options
    from unstuck.supervise.supervisor import supervise

    return supervise(command, Options(**values), store.create)


def _unwatched(command: list[str]) -> int:
    import subprocess

    print(f"unstuck: this run is not watched: {what_works()}", file=sys.stderr, flush=True)
    return subprocess.call(command)


def _absolute(report: str) -> str:
    try:
        return os.path.abspath(report)
    except OSError:
        raise UsageError(
            f"cannot write the report to {report}",
            cause="the working directory is gone",
            next_command=f"cd / && unstuck run --report /tmp/{os.path.basename(report)} train.py",
        ) from None
