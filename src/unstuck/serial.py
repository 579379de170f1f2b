"""Plain data and back: any frozen dataclass of the model as JSON, read by its type hints."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import os
import re
import secrets
import types
import typing
from pathlib import Path
from typing import Any, Literal, TypeVar, Union

from unstuck.errors import UsageError
from unstuck.model import CASE_SCHEMA, Case
from unstuck.recorder.records import Struct

T = TypeVar("T")

_COLUMN = re.compile(
    r"\[\n +([-+.\deEnul]+(?:,\n +[-+.\deEnul]+)*)\n *\]"
)  # of numbers: one line; no text has a line break in JSON
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class MisfitError(ValueError):
    """The data does not have the shape that the type asks for; says at which place."""


def to_plain(obj: Any) -> Any:
    """What JSON knows: dicts, lists, text, finite numbers, booleans, None."""
    if obj is None or isinstance(obj, (bool, int, str)):
        return obj
    if isinstance(obj, float):
        return obj if math.isfinite(obj) else str(obj)
    kind: Any = type(obj)
    if names := _fields(kind):
        return {name: to_plain(getattr(obj, name)) for name in names}
    if isinstance(obj, dict):
        return {str(key): to_plain(value) for key, value in obj.items()}
    if isinstance(obj, (tuple, list, set, frozenset)):
        return [to_plain(item) for item in obj]
    return str(obj)


def from_plain(cls: type[T], data: Any) -> T:
    """An object of `cls`. Unknown keys are passed over and missing ones get their default, so that files of
    other versions can be read; a value of the wrong kind is a MisfitError."""
    return typing.cast(T, _read(cls, data, cls.__name__))


def dump_text(plain: Any) -> str:
    """JSON text that always encodes: names of files may hold bytes that are no UTF-8."""
    text = json.dumps(plain, indent=1, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(plain, indent=1)
    return _COLUMN.sub(lambda column: "[" + " ".join(column[1].split()) + "]", text) + "\n"


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write the file whole or leave the old one: a reader never sees half of it. Raises OSError."""
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    fresh = os.path.join(folder, f".{name}-{secrets.token_hex(6)}")
    # Not mkstemp: it would make the file private whatever the umask says.
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(fresh, target)
    except BaseException:
        os.unlink(fresh)
        raise


def dump_case(case: Case, path: str | os.PathLike[str]) -> None:
    write_whole(path, dump_text(to_plain(case)))


def load_json(path: str | os.PathLike[str]) -> Any:
    """The file's content; what is wrong with it is a UsageError."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {path}", cause=error.strerror or str(error)) from error
    except ValueError as error:
        raise UsageError(f"{path} is not JSON", cause=f"it is damaged, or another kind of file ({error})") from error


def load_case(path: str | os.PathLike[str]) -> Case:
    return case_from(load_json(path), str(path))


def case_from(data: Any, source: str) -> Case:
    """The Case in `data`; `source` names it in the error."""
    if not isinstance(data, dict) or not isinstance(data.get("schema"), int) or "flights" not in data:
        raise UsageError(f"{source} is not a saved case", cause="a case.json of unstuck has 'schema' and 'flights'")
    if data["schema"] < CASE_SCHEMA:
        raise UsageError(
            f"{source} was saved by an earlier version of unstuck",
            cause=f"its Case has schema {data['schema']}, and this version reads {CASE_SCHEMA} and later",
            next_command="unstuck run your_script.py",
        )
    try:
        return from_plain(Case, data)
    except MisfitError as error:
        raise UsageError(f"{source} cannot be read as a case", cause=str(error)) from error


@functools.cache
def _fields(cls: Any) -> tuple[str, ...]:
    """Names of the fields of a dataclass or a record; none of anything else."""
    if isinstance(cls, type) and issubclass(cls, Struct):
        return cls.FIELDS
    return tuple(field.name for field in dataclasses.fields(cls)) if dataclasses.is_dataclass(cls) else ()


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _read(hint: Any, data: Any, at: str) -> Any:
    if hint is Any:
        return data
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        # A newer version may know more words than this one: keep them, rules pass over what they do not know.
        return _plain_value(type(arguments[0]), data, at)
    if origin in (Union, types.UnionType):
        return _read_union(arguments, data, at)
    if origin is tuple:
        return _read_tuple(arguments, data, at)
    if origin is list:
        return list(_read_tuple((arguments[0], Ellipsis), data, at))
    if origin is dict:
        if not isinstance(data, dict):
            raise _misfit(at, "an object", data)
        return {key: _read(arguments[1], value, f"{at}.{key}") for key, value in data.items()}
    if _fields(hint):
        return _read_dataclass(typing.cast(type, hint), data, at)
    return _plain_value(hint, data, at)


def _read_dataclass(cls: type, data: Any, at: str) -> Any:
    if not isinstance(data, dict):
        raise _misfit(at, f"a {cls.__name__}", data)
    hints = _hints(cls)
    known = {name: _read(hints[name], data[name], f"{at}.{name}") for name in _fields(cls) if name in data}
    try:
        return cls(**known)
    except TypeError as error:
        raise MisfitError(f"{at}: {error}") from error


def _read_tuple(arguments: tuple[Any, ...], data: Any, at: str) -> tuple[Any, ...]:
    if not isinstance(data, list):
        raise _misfit(at, "a list", data)
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(_read(arguments[0], item, f"{at}[{number}]") for number, item in enumerate(data))
    if len(data) != len(arguments):
        raise _misfit(at, f"a list of {len(arguments)}", data)
    pairs = zip(arguments, data, strict=True)
    return tuple(_read(hint, item, f"{at}[{number}]") for number, (hint, item) in enumerate(pairs))


def _read_union(arguments: tuple[Any, ...], data: Any, at: str) -> Any:
    last: MisfitError | None = None
    for hint in arguments:
        try:
            return _read(hint, data, at)
        except MisfitError as error:
            # `X | None` ends with None: its complaint would hide what is wrong with the X.
            if last is None or hint is not type(None):
                last = error
    raise last if last is not None else _misfit(at, "a value", data)


def _plain_value(kind: Any, data: Any, at: str) -> Any:
    if kind is type(None):
        if data is None:
            return None
    elif kind is float:
        if isinstance(data, (int, float)) and not isinstance(data, bool):
            return float(data)
        if isinstance(data, str) and data in _NOT_FINITE:
            return _NOT_FINITE[data]
    elif kind is int:
        if isinstance(data, int) and not isinstance(data, bool):
            return data
    elif isinstance(data, kind):
        return data
    raise _misfit(at, "null" if kind is type(None) else f"{kind.__name__}", data)


def _misfit(at: str, wanted: str, got: Any) -> MisfitError:
    shown = repr(got)
    return MisfitError(f"{at}: wanted {wanted}, found {shown if len(shown) < 60 else shown[:57] + '...'}")
