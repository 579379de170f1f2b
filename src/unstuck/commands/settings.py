"""Settings from three places: the flag, else UNSTUCK_* in the environment, else [tool.unstuck] in pyproject.toml."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from unstuck.errors import UsageError

Kind = Callable[[str], Any]
"""Makes the value of a text, or says in a ValueError, TypeError or ArgumentTypeError why it cannot."""

_SWITCH = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def resolve(
    args: argparse.Namespace, kinds: Mapping[str, Kind], environ: Mapping[str, str] | None = None, folder: str = "."
) -> dict[str, Any]:
    """The value of each setting in `kinds`, None where no place has one. A flag's value is taken as it is: None
    (or False, for a switch) means that it was not given."""
    environ = os.environ if environ is None else environ
    table: dict[str, Any] | None = None
    chosen: dict[str, Any] = {}
    for name, kind in kinds.items():
        flag = getattr(args, name, None)
        variable = "UNSTUCK_" + name.upper()
        if flag is not None and flag is not False:
            chosen[name] = flag
        elif environ.get(variable):
            chosen[name] = _read(kind, environ[variable], f"{variable} in the environment")
        else:
            table = _table(os.path.join(folder, "pyproject.toml")) if table is None else table
            value = table.get(name)
            source = f"{name.replace('_', '-')} in [tool.unstuck] of pyproject.toml"
            chosen[name] = flag if value is None else _read(kind, value, source)
    return chosen


def one_of(*choices: str) -> Kind:
    """A kind: one of these words."""

    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(f"it must be one of: {', '.join(choices)}")
        return text

    return read


def switch(text: str) -> bool:
    """A kind: true or false."""
    if text.lower() not in _SWITCH:
        raise ValueError("it must be true or false")
    return _SWITCH[text.lower()]


def _read(kind: Kind, value: Any, source: str) -> Any:
    """`value` is text, or what TOML made of it; kinds read text."""
    try:
        if not isinstance(value, (str, int, float)):
            raise TypeError("it must be a single value")
        if kind is str and not isinstance(value, str):
            raise TypeError("it must be text, in quotes")
        return kind(str(value).lower() if isinstance(value, bool) else str(value))
    except (ValueError, TypeError, argparse.ArgumentTypeError) as error:
        raise UsageError(f"{source} is {value!r}", cause=str(error)) from None


def _table(path: str) -> dict[str, Any]:
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
        print("unstuck: [tool.unstuck] in pyproject.toml is not read: that needs Python 3.11", file=sys.stderr)
        return {}
    try:
        table = tomllib.loads(text).get("tool", {}).get("unstuck", {})
    except tomllib.TOMLDecodeError as error:
        raise UsageError("cannot read [tool.unstuck] from pyproject.toml", cause=str(error)) from error
    return {key.replace("-", "_"): value for key, value in table.items()} if isinstance(table, dict) else {}
