"""Say why a PyTorch training hangs, never ends, dies, crawls or does not learn.

The command line: one file a subcommand, all listed here; errors are caught once, in `main`."""

from __future__ import annotations

import os
import sys

from unstuck.cli import options
from unstuck.errors import UnstuckError
from unstuck.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

# Each is a module of this package with `add_parser` and `run`.
COMMANDS = ("run", "attach", "tune", "scan", "report", "explain", "env", "demo", "completion")

INTERRUPTED = 130
INTERNAL_ERROR = 70
BROKEN_PIPE = 141

_EXAMPLES = """\
start here:
  unstuck demo                  watch a stuck training being explained
  unstuck run train.py          run yours, and find out why it gets stuck
  unstuck attach                explain a training that already hangs
  unstuck explain "an error"    say what an error message means
  unstuck report                show the last run again
"""


def main(argv: list[str] | None = None) -> int:
    """Run one subcommand; what it returns is the exit status."""
    verbose = False
    try:
        words = sys.argv[1:] if argv is None else argv
        plain = options.read(words)
        if plain is not None:
            from unstuck.cli import run

            verbose = bool(plain.verbose)
            return run.run(plain)
        if not words:
            return _start_here()
        if words[0] not in COMMANDS:
            from unstuck.cli import first_word

            first_word.check(words, COMMANDS)
        args, unknown = build_parser(_only(words)).parse_known_args(words)
        if unknown:
            args.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        # `unstuck -v run` and `unstuck run -v` mean the same; the latter's default must not undo the former.
        args.verbose = args.loud or getattr(args, "verbose", None) or None
        verbose = bool(args.verbose)
        status: int = args.run(args)
        if sys.stdout is not None:  # there is none after `>&-`
            sys.stdout.flush()
        return status
    except SystemExit as end:  # argparse: the help was printed, or the usage was wrong
        return end.code if isinstance(end.code, int) else 2
    except UnstuckError as error:
        _print_error(error.what, cause=error.cause, next_command=error.next_command)
        return _after_traceback(verbose, error.exit_code)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has seen enough; what is still buffered must not fail again when Python flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except Exception as error:
        _print_error(
            f"internal error: {type(error).__name__}: {error}",
            cause="a fault of unstuck: please report what the same command prints with -v, and what `unstuck env` says",
            next_command="unstuck env",
        )
        return _after_traceback(verbose, INTERNAL_ERROR)


def _start_here() -> int:
    from unstuck.cli.first_word import next_step

    print(f"{_description()}\n\n{_EXAMPLES}\n  next: {next_step()}", flush=True)
    return 0


def _description() -> str:
    return (__doc__ or "").partition("\n")[0]


def _only(words: list[str]) -> tuple[str, ...]:
    """The subcommand, if the first word is one: the others need not be loaded to start a training."""
    return (words[0],) if words and words[0] in COMMANDS else COMMANDS


def build_parser(commands: tuple[str, ...] = COMMANDS) -> argparse.ArgumentParser:
    import argparse
    import importlib

    from unstuck.cli.parser import Parser, formatter

    parser = Parser(
        prog="unstuck",
        description=_description(),
        epilog=_EXAMPLES,
        formatter_class=formatter,
    )
    parser.add_argument("--version", action="version", version=f"unstuck {__version__}")
    parser.add_argument(
        "-v", "--verbose", dest="loud", action="store_true", help="show tracebacks of unstuck's own errors"
    )
    # With `prog` given argparse need not format a usage line (and load shutil) on every start.
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, prog="unstuck")
    for name in commands:
        module = importlib.import_module(f"unstuck.cli.{name}")
        module.add_parser(subparsers)
        subcommand = subparsers.choices[name]
        subcommand.set_defaults(run=module.run, parser=subcommand)
        try:
            subcommand.add_argument("-v", "--verbose", action="store_true", help=argparse.SUPPRESS)
        except argparse.ArgumentError:
            pass  # it has a -v of its own
    return parser


def _print_error(what: str, *, cause: str = "", next_command: str = "") -> None:
    lines = [f"unstuck: {what}"]
    if cause:
        lines.append(f"  {cause}" if cause.endswith("?") else f"  likely cause: {cause}")
    if next_command:
        lines.append(f"  next: {next_command}")
    try:
        print("\n".join(lines), file=sys.stderr)
    except (OSError, ValueError):
        pass  # nobody can read it; the exit status remains


def _after_traceback(verbose: bool, status: int) -> int:
    if verbose:
        import traceback

        traceback.print_exc()
    return status
