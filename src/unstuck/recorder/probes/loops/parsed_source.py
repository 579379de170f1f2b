"""The user's source, parsed and never run: whole files, single functions, and each piece of them as text.

What was read is kept for a while: the same loops are asked about again and again.
"""

from __future__ import annotations

import ast
import linecache
import os
import stat
import textwrap
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from types import CodeType, FunctionType, MethodType
from typing import Any

from ... import user_code
from ...objects import class_dict, mro_of, some_of

Function = ast.FunctionDef | ast.AsyncFunctionDef
LoopNode = ast.While | ast.For | ast.AsyncFor
Guards = tuple[tuple[ast.expr | str, bool], ...]
"""Conditions, or a text where there is none, and the value that leads on."""

MOST_BYTES = 300_000  # of a file that is parsed whole: more would be felt
MOST_BYTES_READ = 4_000_000  # of a file of which one function is parsed
MOST_LINES = 500  # of such a function
MOST_NODES = 120  # larger expressions are neither shown nor worked out: nobody writes one by hand
MOST_LETTERS = 300  # of a text
MOST_STATEMENTS = 5000  # of a body
MOST_GUARDS = 24  # on the way to one statement; what is further in is not told apart
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.While, ast.For, ast.AsyncFor)
SCOPES = (*FUNCTIONS, ast.ClassDef, ast.Lambda)
TRY = (ast.Try, *((ast.TryStar,) if hasattr(ast, "TryStar") else ()))
WITH = (ast.With, ast.AsyncWith)
_COMPOUND = (ast.For, ast.AsyncFor, ast.While, ast.If, ast.With, ast.AsyncWith)


# --- files and functions -------------------------------------------------------------------------------------------


@lru_cache(maxsize=32)
def tree_of(path: str) -> ast.Module | None:
    """The parsed source of a file."""
    source = _source(path, MOST_BYTES)
    return None if source is None else _parsed(source)


@lru_cache(maxsize=2048)
def mentions(path: str, word: str) -> bool:
    """A word is somewhere in a file; also where that cannot be read."""
    source = _source(path, MOST_BYTES_READ)
    return source is None or word.encode() in source


def _source(path: str, most: int) -> bytes | None:
    """The file, or the cell of a notebook; None where it is too large or not there. A script may also come through a
    pipe: what is in there is not ours to take."""
    try:
        status = os.stat(path)
        if stat.S_ISREG(status.st_mode) and status.st_size < most:
            with open(path, "rb") as file:
                return file.read(most)
    except (OSError, ValueError):
        cell = linecache.cache.get(path)
        if type(cell) is tuple and len(cell) == 4 and sum(map(len, cell[2])) < most:
            return "".join(cell[2]).encode()
    return None


def _parsed(source: bytes | str) -> ast.Module | None:
    """Warnings about the source were given when it was imported. `catch_warnings` would make Python forget which ones
    it has given already, so that it gives them again: only the list of filters is put aside."""
    import warnings

    before = warnings.filters
    warnings.filters = [("ignore", None, Warning, None, 0)]
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    finally:
        warnings.filters = before


def definition(code: CodeType) -> Function | ast.ClassDef | None:
    """What this is the code of, in the tree of its file."""
    tree = tree_of(code.co_filename)
    nodes = _definitions(tree).get(code.co_firstlineno, ()) if tree is not None else ()
    return next((node for node in nodes if node.name == code.co_name), None)


@lru_cache(maxsize=32)
def _definitions(tree: ast.Module) -> dict[int, list[Function | ast.ClassDef]]:
    """By the line at which they begin, decorators included."""
    by_line: dict[int, list[Function | ast.ClassDef]] = {}
    for node in ast.walk(tree):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            by_line.setdefault(first, []).append(node)
    return by_line


def source_of(function: Any) -> Function | None:
    """The definition of a Python function in one of the user's files."""
    if type(function) is MethodType:
        function = function.__func__
    if type(function) is not FunctionType or not user_code.is_user_file(function.__code__.co_filename):
        return None
    return definition(function.__code__)  # type: ignore[return-value]  # the code of a function


def methods_of(thing: object) -> Iterator[Function]:
    """Definitions of the methods of an object's class, and of the user's classes it comes from."""
    return methods_in(type(thing))


def methods_in(kind: type) -> Iterator[Function]:
    """The same of a class."""
    values = (value for each in mro_of(kind) for _, value in some_of(class_dict(each).items()))
    return (method for method in map(source_of, values) if method is not None)


@lru_cache(maxsize=256)
def function_alone(code: CodeType) -> Function | None:
    """A function parsed by itself, where its file may be long and is read for this alone; None if it cannot be read."""
    source = _source(code.co_filename, MOST_BYTES_READ)
    lines = [] if source is None else source.splitlines(keepends=True)[code.co_firstlineno - 1 :][:MOST_LINES]
    first = next((n for n, line in enumerate(lines) if line.lstrip().startswith((b"def ", b"async def "))), len(lines))
    lines = lines[first:]
    if not lines:
        return None
    indent = len(lines[0]) - len(lines[0].lstrip())
    end = next((n for n, line in enumerate(islice(lines, 1, None), 1) if _ends(line, indent)), len(lines))
    tree = _parsed(textwrap.dedent(b"".join(lines[:end]).decode("utf-8", "replace")))
    written = tree.body[0] if tree is not None and tree.body else None
    return written if isinstance(written, FUNCTIONS) and written.name == code.co_name else None


def _ends(line: bytes, indent: int) -> bool:
    text = line.strip()
    return bool(text) and not text.startswith((b"#", b")", b"]", b"}")) and len(line) - len(line.lstrip()) <= indent


# --- statements, and the conditions on the way to them --------------------------------------------------------------


class Placed:
    """A statement, the conditions on the way to it, and whether another loop is in between."""

    __slots__ = ("guards", "nested", "statement")

    def __init__(self, statement: ast.stmt, guards: Guards, nested: bool) -> None:
        self.statement, self.guards, self.nested = statement, guards, nested


def beneath(body: list[ast.stmt]) -> Iterator[Placed]:
    """Every statement that runs in the same scope, in the order they are written."""
    waiting = _in_order(body, (), False)
    for _ in range(MOST_STATEMENTS):
        if not waiting:
            return
        here = waiting.pop()
        here.statement = _written_out(here.statement)
        yield here
        for inner, added, nested in reversed(list(bodies(here.statement))):
            waiting.extend(_in_order(inner, _joined(here.guards, added), here.nested or nested))


def _in_order(body: list[ast.stmt], guards: Guards, nested: bool) -> list[Placed]:
    """The last one first. Behind `if worse: …; continue` a statement is reached only where it is not worse."""
    placed = []
    for statement in body:
        placed.append(Placed(statement, guards, nested))
        if isinstance(statement, ast.If) and _leaves(statement.body) != _leaves(statement.orelse):
            guards = _joined(guards, ((statement.test, not _leaves(statement.body)),))
    return placed[::-1]


def _leaves(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))


def _joined(guards: Guards, added: Guards) -> Guards:
    return (*guards[:MOST_GUARDS], ("…", True)) if len(guards) >= MOST_GUARDS else guards + added


@lru_cache(maxsize=2048)
def _written_out(statement: ast.stmt) -> ast.stmt:
    """`n = n + 1 if worse else 0` and `stop = n >= 5` as the `if` that they stand for; anything else as it is."""
    value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
    if isinstance(value, ast.IfExp):
        test, given = value.test, (value.body, value.orelse)
    elif value is not None and _is_test(value):
        test, given = value, (ast.Constant(True), ast.Constant(False))
    else:
        return statement
    kind, rest = type(statement), vars(statement)
    either = [ast.copy_location(kind(**{**rest, "value": ast.copy_location(each, value)}), statement) for each in given]
    return ast.copy_location(ast.If(test, either[:1], either[1:]), statement)


def _is_test(value: ast.expr) -> bool:
    if isinstance(value, ast.BoolOp):
        return all(map(_is_test, value.values))
    return isinstance(value, ast.Compare) or (isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not))


def bodies(statement: ast.stmt) -> Iterator[tuple[list[ast.stmt], Guards, bool]]:
    """Statements within a statement, with what this adds to their conditions."""
    if isinstance(statement, ast.If):
        yield statement.body, ((statement.test, True),), False
        yield statement.orelse, ((statement.test, False),), False
    elif isinstance(statement, LOOPS):
        tested = isinstance(statement, ast.While) and not isinstance(statement.test, ast.Constant)
        yield statement.body, ((statement.test, True),) if tested else (), True  # type: ignore[union-attr]
        yield statement.orelse, (), False
    elif isinstance(statement, WITH):
        yield statement.body, (), False
    elif isinstance(statement, TRY):
        for part in (statement.body, statement.orelse, statement.finalbody):
            yield part, (), False
        for handler in statement.handlers:
            yield handler.body, ((f"except {text(handler.type)}" if handler.type else "except", True),), False
    elif isinstance(statement, ast.Match):
        for case in statement.cases:
            yield case.body, ((f"case {text(case.pattern)}", True),), False


@lru_cache(maxsize=512)
def around_line(code: CodeType, line: int) -> tuple[ast.AST, list[LoopNode]]:
    """The function that runs, and its loops around a line, outermost first."""
    tree = tree_of(code.co_filename)
    function: ast.AST | None = tree if code.co_name == "<module>" else definition(code)
    if tree is None or function is None:
        return ast.Module([], []), []
    loops: list[LoopNode] = []
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        first = getattr(node, "lineno", line)
        if isinstance(node, (*SCOPES, ast.expr)) or not first <= line <= (getattr(node, "end_lineno", None) or line):
            continue
        if isinstance(node, LOOPS) and line <= (node.body[-1].end_lineno or line):
            loops.append(node)
        waiting.extend(ast.iter_child_nodes(node))
    return function, sorted(loops, key=lambda loop: (loop.lineno, loop.col_offset))


# --- pieces of source as text --------------------------------------------------------------------------------------


@lru_cache(maxsize=8192)
def text(node: ast.AST) -> str:
    """As it is written, in one line. Two nodes that are too large to be shown have different texts."""
    if isinstance(node, ast.Name):
        return node.id[:MOST_LETTERS]
    written = ast.unparse(node) if is_small(node) else ""
    if written and len(written) <= MOST_LETTERS:
        return written
    return f"{written[:60]}… (line {getattr(node, 'lineno', 0)}, column {getattr(node, 'col_offset', 0)})"


@lru_cache(maxsize=8192)
def is_small(node: ast.AST) -> bool:
    nodes = 0
    waiting = [node]
    while waiting:
        node = waiting.pop()
        nodes += 1
        if nodes > MOST_NODES or (isinstance(node, ast.Constant) and _is_long(node.value)):
            return False
        waiting.extend(ast.iter_child_nodes(node))
    return True


def _is_long(value: object) -> bool:
    if isinstance(value, (str, bytes)):
        return len(value) > MOST_LETTERS
    return isinstance(value, int) and value.bit_length() > 1000


@lru_cache(maxsize=4096)
def first_line(statement: ast.stmt) -> str:
    """The statement, or its head where others are within it."""
    if isinstance(statement, _COMPOUND):
        statement = type(statement)(**{**vars(statement), "body": [], "orelse": []})
    return text(statement).partition("\n")[0][:120]


@lru_cache(maxsize=2048)
def expression(name: str) -> ast.expr:
    try:
        return ast.parse(name, mode="eval").body
    except (SyntaxError, ValueError):  # the text of something that is too large to be shown
        return ast.Name(name, ast.Load())


@lru_cache(maxsize=4096)
def names(node: ast.AST) -> tuple[str, ...]:
    """Names, attributes and items an expression reads, as written; not those it calls, but what these are given."""
    read: list[str] = []
    waiting: list[ast.AST] = [node] if is_small(node) else []
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.Call):
            waiting[:0] = [*node.args, *(keyword.value for keyword in node.keywords)]
        elif isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            read.append(text(node))
        else:
            waiting[:0] = ast.iter_child_nodes(node)
    return tuple(dict.fromkeys(read))


def last_name(node: ast.AST) -> str:
    """`log` of `log`, `x.log` and `torch.log`; empty where there is none."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def called(node: ast.AST) -> str:
    """The last name of what is called; empty where nothing is, or that has none."""
    return last_name(node.func) if isinstance(node, ast.Call) else ""


def calls(node: ast.AST) -> bool:
    return not is_small(node) or any(isinstance(inner, ast.Call) for inner in ast.walk(node))


def scopes(tree: ast.Module) -> Iterator[Function | ast.Module]:
    """The module itself, and every function in it."""
    yield tree
    yield from (node for node in ast.walk(tree) if isinstance(node, FUNCTIONS))


def scope_name(scope: Function | ast.Module) -> str:
    return getattr(scope, "name", "<module>")


def covers(node: ast.stmt | ast.expr, line: int) -> bool:
    """It begins on that line or before, and ends there or after."""
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def own_parts(statement: ast.stmt) -> Iterator[ast.AST]:
    """What is in a statement but not in one of the statements below it."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [each for each in ast.iter_child_nodes(node) if not isinstance(each, ast.stmt)]


def own_nodes(function: Function | ast.Module) -> Iterator[ast.AST]:
    """Those of the function itself, not of functions and classes that are defined in it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            waiting += ast.iter_child_nodes(node)


def is_generator(function: Function) -> bool:
    return any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in own_nodes(function))
