"""Settings from three places: the flag, else UNSTUCK_* in the environment, else [tool.unstuck] in pyproject.toml."""

from __future__ import annotations

import os

from unstuck.cli.options import OPTIONS
from unstuck.errors import UsageError

TYPE_CHECKING = False  # typing itself would cost more than the rest of this module
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

NAMES = frozenset((*(option.flag for option in OPTIONS), "tune-seconds"))
# No settings: what unstuck itself passes on to processes, and the mark of its tests.
_OWN_VARIABLES = frozenset(
    ("UNSTUCK_FLIGHT_DIR", "UNSTUCK_HEAL", "UNSTUCK_TAKEOVER", "UNSTUCK_ADDED", "UNSTUCK_TEST_MARK")
)
_SWITCH = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


class Settings:
    def __init__(self, environ: Mapping[str, str] | None = None, folder: str = ".") -> None:
        self._environ = os.environ if environ is None else environ
        self.notes: list[str] = []  # what the user should know about how settings were read
        self._table = self._read(os.path.join(folder, "pyproject.toml"))
        self._note_unknown()

    def value(self, name: str, kind: str, flag: Any = None, choices: Sequence[str] = ()) -> Any:
        """`name` as on the flag (`stall-after`), `kind` as of an Option; None where it is not set anywhere.

        A bad value is a UsageError that says where it came from."""
        variable = "UNSTUCK_" + name.upper().replace("-", "_")
        if flag is not None:
            value, source, correct = flag, f"--{name}", "unstuck run --help"
        elif self._environ.get(variable):
            value, source, correct = self._environ[variable], f"{variable} in the environment", f"unset {variable}"
        elif name in self._table:
            value, source = self._table[name], f"{name} in [tool.unstuck] of pyproject.toml"
            correct = "edit pyproject.toml"
        else:
            return None
        wanted = {
            "seconds": "a number, 0 or more",
            "count": "a whole number, 0 or more",
            "switch": "true or false",
            "text": "text, in quotes",
            "choice": f"one of: {', '.join(choices)}",
        }
        try:
            return _parsed(value, kind, choices)
        except (TypeError, ValueError, KeyError):
            cause = f"it must be {wanted[kind]}"
            raise UsageError(f"{source} is {value!r}", cause=cause, next_command=correct) from None

    def _note_unknown(self) -> None:
        """A name that nobody reads is most likely a typo, and what it should do does not happen."""
        variables = {
            name: name[8:].lower().replace("_", "-")
            for name in self._environ
            if name.startswith("UNSTUCK_") and name not in _OWN_VARIABLES
        }
        for name, setting in variables.items():
            if setting not in NAMES:
                near = _near(setting)
                hint = f": did you mean UNSTUCK_{near.upper().replace('-', '_')}?" if near else ""
                self.notes.append(f"{name} in the environment is not a setting of unstuck{hint}")
        for name in self._table:
            if name not in NAMES:
                near = _near(name)
                hint = f": did you mean {near}?" if near else ""
                self.notes.append(f"{name} in [tool.unstuck] of pyproject.toml is not a setting of unstuck{hint}")

    def _read(self, path: str) -> dict[str, Any]:
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except (OSError, ValueError):
            return {}
        if "tool.unstuck" not in text:
            return {}  # whatever else may be wrong with the file is not our business
        try:
            import tomllib
        except ImportError:
            self.notes.append("[tool.unstuck] in pyproject.toml is ignored: reading it needs Python 3.11 or newer")
            return {}
        try:
            table = tomllib.loads(text).get("tool", {}).get("unstuck", {})
        except tomllib.TOMLDecodeError as error:
            raise UsageError("cannot read [tool.unstuck] from pyproject.toml", cause=str(error)) from error
        return {key.replace("_", "-"): value for key, value in table.items()} if isinstance(table, dict) else {}


def _near(name: str) -> str:
    import difflib

    return next(iter(difflib.get_close_matches(name, NAMES, 1)), "")


def _parsed(value: Any, kind: str, choices: Sequence[str]) -> Any:
    """Of a flag, a variable or TOML; raises where it is nothing of that kind."""
    if kind == "switch":
        return value if isinstance(value, bool) else _SWITCH[value.lower() if isinstance(value, str) else ""]
    if kind == "seconds":
        number = float(value)
        if isinstance(value, bool) or not 0 <= number < float("inf"):
            raise ValueError
        return number
    if kind == "count":
        if isinstance(value, bool) or not isinstance(value, (int, str)) or int(value) < 0:
            raise ValueError
        return int(value)
    if not isinstance(value, str) or (kind == "choice" and value not in choices):
        raise ValueError
    return value
