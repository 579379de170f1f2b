"""Plain data and back: any frozen dataclass of the model as JSON, read by its type hints."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import os
import re
import secrets
import sys
import types
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar, Union

from unstuck.errors import UsageError
from unstuck.model import CASE_SCHEMA, Case
from unstuck.recorder.records import Struct

T = TypeVar("T")

_COLUMN = re.compile(
    r"\[\n +([-+.\deEnul]+(?:,\n +[-+.\deEnul]+)*)\n *\]"
)  # of numbers: one line; no text has a line break in JSON
INTERNED = 200  # characters: shorter texts, as paths and names, are kept once however often they occur
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class MisfitError(ValueError):
    """The data does not have the shape that the type asks for; says at which place."""

    def __init__(self, what: str, at: str = "") -> None:
        super().__init__(f"{at}: {what}" if at else what)
        self._what, self._at = what, at

    def inside(self, outer: str) -> MisfitError:
        return MisfitError(self._what, outer + self._at)


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
    try:
        return typing.cast(T, _reader(typing.cast(Any, cls))(data))
    except MisfitError as error:
        raise error.inside(cls.__name__) from None


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


# --- reading by type hints: a function for each hint, made once ----------------------------------------------------

Reader = Callable[[Any], Any]


@functools.cache
def _reader(hint: Any) -> Reader:
    if hint is Any:
        return lambda data: data
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        # A newer version may know more words than this one: keep them, rules pass over what they do not know.
        return _plain_reader(type(arguments[0]))
    if origin in (Union, types.UnionType):
        return _union_reader([_reader(argument) for argument in arguments])
    if origin is tuple and arguments[1:] != (Ellipsis,):
        return _row_reader([_reader(argument) for argument in arguments])
    if origin in (tuple, list):
        return _sequence_reader(origin, _reader(arguments[0]))
    if origin is dict:
        return _dict_reader(_reader(arguments[1]))
    return _object_reader(hint) if _fields(hint) else _plain_reader(hint)


def _object_reader(cls: Any) -> Reader:
    readers: list[tuple[str, Reader]] = []  # made at its first use: a class may hold others of its own

    def read(data: Any) -> Any:
        if not isinstance(data, dict):
            raise _misfit(f"a {cls.__name__}", data)
        if not readers:
            hints = typing.get_type_hints(cls)
            readers.extend((name, _reader(hints[name])) for name in _fields(cls))
        known = {}
        for name, reader in readers:
            if name in data:
                try:
                    known[name] = reader(data[name])
                except MisfitError as error:
                    raise error.inside(f".{name}") from None
        try:
            return cls(**known)
        except TypeError as error:
            raise MisfitError(str(error)) from error

    return read


def _sequence_reader(kind: Any, reader: Reader) -> Reader:
    def read(data: Any) -> Any:
        if not isinstance(data, list):
            raise _misfit("a list", data)
        done: list[Any] = []
        try:
            done.extend(map(reader, data))
        except MisfitError as error:
            raise error.inside(f"[{len(done)}]") from None
        return kind(done)

    return read


def _row_reader(readers: list[Reader]) -> Reader:
    def read(data: Any) -> Any:
        if not isinstance(data, list):
            raise _misfit("a list", data)
        if len(data) != len(readers):
            raise _misfit(f"a list of {len(readers)}", data)
        done: list[Any] = []
        try:
            done.extend(reader(item) for reader, item in zip(readers, data, strict=True))
        except MisfitError as error:
            raise error.inside(f"[{len(done)}]") from None
        return tuple(done)

    return read


def _dict_reader(reader: Reader) -> Reader:
    def read(data: Any) -> Any:
        if not isinstance(data, dict):
            raise _misfit("an object", data)
        done: dict[str, Any] = {}
        for key, value in data.items():
            try:
                done[key] = reader(value)
            except MisfitError as error:
                raise error.inside(f".{key}") from None
        return done

    return read


def _union_reader(readers: list[Reader]) -> Reader:
    nothing = _reader(typing.cast(Any, type(None)))

    def read(data: Any) -> Any:
        if data is None and nothing in readers:
            return None
        last: MisfitError | None = None
        for reader in readers:
            try:
                return reader(data)
            except MisfitError as error:
                # `X | None` ends with None: its complaint would hide what is wrong with the X.
                if last is None or reader is not nothing:
                    last = error
        raise last if last is not None else _misfit("a value", data)

    return read


def _plain_reader(kind: Any) -> Reader:
    wanted = "null" if kind is type(None) else kind.__name__

    def read_float(data: Any) -> Any:
        if type(data) is float:
            return data
        if isinstance(data, int) and not isinstance(data, bool):
            return float(data)
        if isinstance(data, str) and data in _NOT_FINITE:
            return _NOT_FINITE[data]
        raise _misfit(wanted, data)

    def read_text(data: Any) -> Any:
        if not isinstance(data, str):
            raise _misfit(wanted, data)
        return sys.intern(data) if len(data) < INTERNED else data

    def read(data: Any) -> Any:
        if type(data) is kind or (kind is not int and isinstance(data, kind)):
            return data
        raise _misfit(wanted, data)

    return read_float if kind is float else read_text if kind is str else read


def _misfit(wanted: str, got: Any) -> MisfitError:
    shown = repr(got)
    return MisfitError(f"wanted {wanted}, found {shown if len(shown) < 60 else shown[:57] + '...'}")
