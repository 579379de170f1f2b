"""What the source says about a line: its text, the loop and the `with` blocks around it. Nothing is executed."""

from __future__ import annotations

import ast
import functools
import os
import re
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from unstuck.model import Frame

from .paths import SCOPES, polled_path, stated_path, tried

JUMPS = (ast.Return, ast.Continue, ast.Break)

_LIBRARY = re.compile(r"/lib(32|64)?/(python|pypy)\d\.\d+t?/|/(site|dist)-packages/|/python\d+\.zip/")
_NOTEBOOK = re.compile(r"^<ipython-input-|/ipykernel_\d+/")
_OURS = str(Path(__file__).resolve().parent.parent) + os.sep
_DEMOS = _OURS + "demos" + os.sep  # stand-ins for the user's own scripts
_MAX_BYTES = 4_000_000  # of a source that is read
MAX_CLEAN_UP = 2  # statements before a function returns: `destroy_process_group()`, a last message


class Source:
    """Sources by file, kept while the file does not change."""

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}

    def annotate(self, frames: tuple[Frame, ...], folder: str = "") -> tuple[Frame, ...]:
        """Fill in code, user, loop, holds, takes. `folder`: the target's working directory, for relative names.

        Library frames beneath the user's code, and torch's, give their text only: parsing takes time and memory.
        """
        done: list[Frame] = []
        met_user = False
        for frame in frames:
            path = frame.file
            if folder and not path.startswith(("/", "<")):
                path = os.path.join(folder, path)
            user = is_user_code(path)
            parse = user or not (met_user or "/torch/" in path)
            done.append(self._annotated(replace(frame, file=path, user=user), parse=parse))
            met_user = met_user or user
        return tuple(done)

    def stated_path(self, frame: Frame, expression: str) -> str | None:
        """The path that an expression in that frame means, where the source alone says it."""
        file = self._file(frame.file)
        return stated_path(file.tree, expression) if file and file.tree is not None else None

    def tree(self, path: str) -> ast.Module | None:
        """None where it cannot be read, or is written for another Python than ours."""
        file = self._file(path)
        return None if file is None else file.tree

    def _annotated(self, frame: Frame, *, parse: bool) -> Frame:
        file = self._file(frame.file)
        if file is None or frame.line <= 0:
            return frame
        frame = replace(frame, code=file.line(frame.line))
        facts = file.facts(frame.line) if parse else None
        if facts is None:
            return frame
        function = facts.function if facts.function.rpartition(".")[2] == frame.function else frame.function
        own = {name: getattr(frame, name) for name in ("file", "code", "user", "arguments")}
        return replace(facts, function=function, **own)

    def _file(self, path: str) -> _File | None:
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            return None
        stamp = (status.st_mtime_ns, status.st_size)
        if path not in self._files or self._files[path].stamp != stamp:
            if status.st_size > _MAX_BYTES or not os.path.isfile(path):
                return None
            self._files[path] = _File(path, stamp)
        return self._files[path]


class _File:
    def __init__(self, path: str, stamp: tuple[int, int]) -> None:
        self.stamp = stamp
        try:
            self._bytes = Path(path).read_bytes()
        except OSError:
            self._bytes = b""
        self._lines = self._bytes.decode(errors="replace").splitlines()
        self._facts: dict[int, Frame] = {}

    def line(self, number: int) -> str:
        return self._lines[number - 1].strip() if number <= len(self._lines) else ""

    @functools.cached_property
    def tree(self) -> ast.Module | None:
        """None where it is written for another Python than ours."""
        with warnings.catch_warnings():  # "\\d" in the user's strings is not our business
            warnings.simplefilter("ignore")
            try:
                return ast.parse(self._bytes)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return None

    def facts(self, line: int) -> Frame | None:
        """Kept by line: nine workers stand at the same one."""
        if line not in self._facts and self.tree is not None:
            self._facts[line] = facts_of(self.tree, line)
        return self._facts.get(line)


def is_user_code(path: str) -> bool:
    """By path alone: the target may run another interpreter than ours."""
    if _NOTEBOOK.search(path) or path.startswith(_DEMOS):
        return True
    if path.startswith(("<", _OURS)) or _LIBRARY.search(path):
        return False
    return os.path.isfile(path)


def facts_of(tree: ast.Module, line: int) -> Frame:
    """A frame at that line with all that the source says about it, and the function's qualified name."""
    names: list[str] = []
    arms: list[tuple[int, int]] = []
    body: list[ast.stmt] = tree.body
    loop: ast.While | ast.For | ast.AsyncFor | None = None
    holds: list[str] = []
    takes: list[str] = []
    for node in around(tree, line):  # outermost first
        if isinstance(node, SCOPES):
            if _in_header(node, line):
                break  # a decorator, a default or the `def` itself runs in the scope outside
            names.append(_name_in(node))
            loop, holds, takes, arms = None, [], [], []
            body = getattr(node, "body", [])
        elif isinstance(node, ast.While | ast.For | ast.AsyncFor):
            if line <= (node.body[-1].end_lineno or line):
                loop = node
        elif isinstance(node, ast.With | ast.AsyncWith):
            if line >= node.body[0].lineno:
                holds += [ast.unparse(item.context_expr) for item in node.items]
            if line <= max(node.lineno, node.body[0].lineno - 1):
                takes += [ast.unparse(item.context_expr) for item in _items_at(node, line)]
        elif isinstance(node, ast.If) and line > node.test.end_lineno:  # type: ignore[operator]  # of parsed source
            arms.append((node.lineno, int(line > (node.body[-1].end_lineno or line))))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "acquire":
            takes.append(ast.unparse(node.func.value))
    return Frame(
        file="",
        line=line,
        function=".".join(names).removesuffix(".<locals>"),
        loop=(loop.lineno, loop.end_lineno or loop.lineno) if loop else None,
        holds=tuple(holds),
        takes=", ".join(takes),
        polls=polled_path(loop) if loop else "",
        tries=tried(loop) if loop else "",
        arms=tuple(arms),
        guards=tuple(_guards(body, line)) if isinstance(body, list) else (),
        leaves=loop is None and isinstance(body, list) and _leaves(body, line),
    )


def _guards(body: list[ast.stmt], line: int) -> Iterator[int]:
    """Statements before the line, in its own block or in one around it, that return, or are an `if` that jumps."""
    for statement in body:
        if statement.lineno > line:
            return
        if (statement.end_lineno or line) >= line:
            for name in ("body", "orelse", "handlers", "finalbody"):
                yield from _guards(getattr(statement, name, []), line)
        elif not isinstance(statement, SCOPES):
            jumps = JUMPS if isinstance(statement, ast.If) else ast.Return
            if any(isinstance(each, jumps) for each in ast.walk(statement)):
                yield statement.lineno


def _leaves(body: list[ast.stmt], line: int) -> bool:
    """Nothing but clean-up stands between the statement at that line and the end of the function."""
    for number, statement in enumerate(body):
        if not statement.lineno <= line <= (statement.end_lineno or line):
            continue
        following = body[number + 1 :]
        if any(isinstance(each, ast.Return | ast.Raise) for each in following[:MAX_CLEAN_UP]):
            return True
        inner = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
        inside = next((block for block in inner if _has(block, line)), None)
        if inside is not None and _leaves(inside, line) and isinstance(inside[-1], ast.Return | ast.Raise):
            return True
        ends = len(following) <= MAX_CLEAN_UP and all(isinstance(each, ast.Expr) for each in following)
        return ends and (inside is None or _leaves(inside, line))
    return False


def _has(block: object, line: int) -> bool:
    return isinstance(block, list) and any(s.lineno <= line <= (s.end_lineno or line) for s in block)


def around(node: ast.AST, line: int) -> Iterator[ast.AST]:
    """All nodes whose lines include this one, each before its children."""
    for child in ast.iter_child_nodes(node):
        first = getattr(child, "lineno", None)
        if first is None:
            yield from around(child, line)
            continue
        decorators = getattr(child, "decorator_list", None)
        if decorators:
            first = min(first, decorators[0].lineno)
        if first <= line <= (getattr(child, "end_lineno", None) or first):
            yield child
            yield from around(child, line)


def _in_header(node: ast.AST, line: int) -> bool:
    body = getattr(node, "body", None)
    if not isinstance(body, list):
        return False  # a lambda
    decorators = getattr(body[0], "decorator_list", None)
    first: int = (decorators or body)[0].lineno
    return line < first


def _name_in(node: ast.AST) -> str:
    name = str(getattr(node, "name", "<lambda>"))
    return name if isinstance(node, ast.ClassDef) else f"{name}.<locals>"


def _items_at(node: ast.With | ast.AsyncWith, line: int) -> list[ast.withitem]:
    """The items written on that line; all of them where the line is the bare `with`."""
    there = [item for item in node.items if item.context_expr.lineno <= line <= (item.context_expr.end_lineno or line)]
    return there or node.items
