"""Settings from three places: the flag, else UNSTUCK_* in the environment, else [tool.unstuck] in pyproject.toml."""

from __future__ import annotations

import math
import os

from unstuck.errors import UsageError

TYPE_CHECKING = False  # typing itself would cost more than the rest of this module
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar

    T = TypeVar("T")

_SWITCH = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


class Settings:
    """Each method takes the setting's name as on the flag (`stall-after`), the flag's value (None: not given) and
    the default; a bad value is a UsageError that says where it came from."""

    def __init__(self, environ: Mapping[str, str] | None = None, folder: str = ".") -> None:
        self._environ = os.environ if environ is None else environ
        self.notes: list[str] = []
        """What the user should know about how settings were read."""
        self._table = self._read(os.path.join(folder, "pyproject.toml"))

    def number(self, name: str, flag: float | None, default: float) -> float:
        return self._first(name, flag, default, _number, "a number, 0 or more")

    def switch(self, name: str, flag: bool | None, default: bool) -> bool:
        return self._first(name, flag, default, _switch, "true or false")

    def text(self, name: str, flag: str | None, default: str) -> str:
        return self._first(name, flag, default, _text, "text, in quotes")

    def choice(self, name: str, flag: str | None, default: str, choices: Sequence[str]) -> str:
        def read(value: Any) -> str:
            if value not in choices:
                raise ValueError
            return str(value)

        return self._first(name, flag, default, read, f"one of: {', '.join(word for word in choices if word)}")

    def _first(self, name: str, flag: T | None, default: T, read: Callable[[Any], T], wanted: str) -> T:
        variable = "UNSTUCK_" + name.upper().replace("-", "_")
        value: Any
        if flag is not None:
            value, source, correct = flag, f"--{name}", "unstuck run --help"
        elif self._environ.get(variable):
            value, source, correct = self._environ[variable], f"{variable} in the environment", f"unset {variable}"
        elif name in self._table:
            value, source, correct = (
                self._table[name],
                f"{name} in [tool.unstuck] of pyproject.toml",
                "edit pyproject.toml",
            )
        else:
            return default
        try:
            return read(value)
        except (TypeError, ValueError):
            raise UsageError(f"{source} is {value!r}", cause=f"it must be {wanted}", next_command=correct) from None

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


def _number(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError
    number = float(value)
    if not math.isfinite(number) or number < 0:
        raise ValueError
    return number


def _switch(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = _text(value).lower()
    if word not in _SWITCH:
        raise ValueError
    return _SWITCH[word]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
