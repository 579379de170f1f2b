"""Every option of `run`, once: parser, help, quick reader, UNSTUCK_* variables and pyproject.toml follow this table.

The quick reader spares an ordinary command line argparse, which takes longer to load than all of the supervisor. It
reads what is plainly right; for help, mistakes and anything unusual argparse reads the same words again.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from unstuck.cli.settings import Settings

MAX_SECONDS = 9_999_999.0  # more than a hundred days is a typo


class Option:
    """`kind`: "choice", "seconds", "count", "text" or "switch"."""

    __slots__ = ("choices", "default", "flag", "help", "kind", "metavar", "name", "short")

    def __init__(
        self,
        flag: str,
        help: str,
        kind: str = "text",
        choices: tuple[str, ...] = (),
        default: Any = None,
        metavar: str | None = None,
        short: str = "",
    ) -> None:
        self.flag, self.help, self.kind, self.choices = flag, help, kind, choices
        self.default, self.metavar, self.short = default, metavar, short
        self.name = flag.replace("-", "_")

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        words = [self.short, f"--{self.flag}"] if self.short else [f"--{self.flag}"]
        if self.kind == "switch":
            parser.add_argument(*words, action="store_true", default=None, help=self.help)
        elif self.kind == "choice":
            parser.add_argument(*words, choices=self.choices, help=self.help)
        elif self.kind == "seconds":
            from unstuck.cli.parser import seconds

            wait = seconds(f"--{self.flag} takes", f"unstuck run --{self.flag} 60 train.py")
            parser.add_argument(*words, type=wait, metavar=self.metavar, help=self.help)
        else:  # what is no count is said in the same words as one in the environment
            parser.add_argument(*words, metavar=self.metavar, help=self.help)

    def plainly_right(self, value: str) -> Any:
        """The value argparse would make of it; None if that is for argparse to judge."""
        if not value or value.startswith("-") or (self.choices and value not in self.choices):
            return None
        if self.kind == "count" and not (value.isascii() and value.isdigit()):
            return None
        if self.kind != "seconds":
            return value
        try:
            number = float(value)
        except ValueError:
            return None
        return number if 0 < number < MAX_SECONDS else None

    def resolve(self, settings: Settings, given: Any) -> Any:
        """What is set, by the flag, the environment or pyproject.toml; 0 and nothing mean the default."""
        value = settings.value(self.flag, self.kind, given, self.choices) or self.default
        return bool(value) if self.kind == "switch" else value


OPTIONS = (
    Option(
        "on-hang",
        "what to do when the run is certainly stuck: only say so (default), end it (exit code 3), or heal its "
        "DataLoaders: bad samples are left out, dead and hung workers replaced",
        "choice",
        ("report", "stop", "heal"),
        "report",
    ),
    Option(
        "stop-on",
        "end the run (exit code 3) at the first finding of this severity or higher: stuck, NaN, not learning",
        "choice",
        ("error", "warning"),
    ),
    Option(
        "stall-after",
        "treat S seconds without progress as a hang, instead of judging by the run's own pace",
        "seconds",
        metavar="S",
    ),
    Option("report", "also write the report to FILE (.html, .md or .json)", metavar="FILE"),
    Option("redact", "leave paths, arguments, addresses and quoted values out of that report", "switch"),
    Option(
        "live",
        "show the run on a page of its own while it goes on: its address, on this machine only, is printed",
        "switch",
    ),
    Option(
        "fail-on",
        "exit with code 4 if the run succeeds but has a finding of this severity or higher",
        "choice",
        ("error", "warning"),
    ),
    Option(
        "format",
        "github: also write findings as annotations and into the step summary (default where GITHUB_ACTIONS is set)",
        "choice",
        ("terminal", "github"),
    ),
    Option("python", "interpreter to run the script with (see `unstuck env`)", metavar="PY"),
    Option(
        "grace",
        "seconds that a run gets to end before it is killed (default: 30)",
        "seconds",
        default=30.0,
        metavar="S",
    ),
    Option(
        "restart",
        "start a run that died again, up to N times; the script must resume from its own checkpoint",
        "count",
        metavar="N",
    ),
    Option(
        "restart-on",
        "what to restart after: death (default), hang (which is then ended as by --on-hang stop), or both",
        "choice",
        ("death", "hang", "death,hang", "hang,death"),
        "death",
    ),
    Option("detach", "keep the training running if unstuck itself is killed", "switch"),
    Option(
        "trace-nan",
        "on a GPU: wait for each loss, so that a NaN is traced to its operation (slower)",
        "switch",
    ),
    Option(
        "verbose",
        "say at the end what was watched if nothing was found, and show tracebacks of unstuck's own errors",
        "switch",
        short="-v",
    ),
)
BY_WORD = {word: option for option in OPTIONS for word in (f"--{option.flag}", option.short) if word}


class Given:
    """What argparse would have given."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {option.name: None for option in OPTIONS}
        self.module: list[str] | None = None
        self.command: list[str] = []

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["values"][name]
        except KeyError:
            raise AttributeError(name) from None


def read(words: list[str]) -> Given | None:
    """`words` as after `unstuck`: run [options] script [arguments]."""
    if not words or words[0] != "run":
        return None
    given, rest = Given(), words[1:]
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            given.command = [word, *rest]
            return given
        if word == "-m" and rest:
            given.module = rest
            return given
        if word == "--" and rest:
            given.command = [word, *rest]
            return given
        flag, equals, value = word.partition("=")
        option = BY_WORD.get(flag)
        if option is None or (option.kind == "switch" and equals) or not (option.kind == "switch" or equals or rest):
            return None
        if option.kind == "switch":
            given.values[option.name] = True
            continue
        taken = option.plainly_right(value if equals else rest.pop(0))
        if taken is None:
            return None
        given.values[option.name] = taken
    return None
