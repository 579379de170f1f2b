"""The change to a call of DataLoader, as a diff of the user's source. The file itself is only read."""

from __future__ import annotations

import ast
import difflib
import os

from unstuck.report.json_report import relative

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

POSITIONS = {"num_workers": 5, "pin_memory": 7, "timeout": 9, "multiprocessing_context": 11}  # without a name
DEFAULTS = (None, False, 0)  # values that need not be written where nothing is


def diff(file: str, line: int, kind: str, changes: dict[str, Any]) -> str | None:
    """A unified diff that sets `changes` in the call at this line; None where that cannot be done safely."""
    try:
        with open(file, "rb") as opened:
            before = opened.read()
        after = edited(before, line, kind, changes)
    except (OSError, SyntaxError, ValueError):
        return None
    if after is None or after == before:
        return None
    name = relative(file, os.getcwd()) or file
    old, new = (text.decode("utf-8").splitlines(keepends=True) for text in (before, after))
    lines = difflib.unified_diff(old, new, name, name, n=2)
    return "".join(text if text.endswith("\n") else text + "\n\\ No newline at end of file\n" for text in lines)


def given_by(file: str, line: int, kind: str, changes: dict[str, Any]) -> dict[str, str]:
    """Of the arguments to change those that the call does not say itself, each with the expression that it takes."""
    try:
        with open(file, "rb") as opened:
            source = opened.read()
        call = find(ast.parse(source), line, kind)
    except (OSError, SyntaxError, ValueError):
        return {}
    nodes = {} if call is None else {name: _argument(call, name) for name in changes}
    text = source.decode("utf-8", "replace")
    return {
        name: ast.get_source_segment(text, node) or ast.unparse(node)
        for name, node in nodes.items()
        if node is not None and not _is_constant(node)
    }


def edited(source: bytes, line: int, kind: str, changes: dict[str, Any]) -> bytes | None:
    """The source with the call changed; only if it then parses and says what it should. An expression is not written
    over: it comes from somewhere, an option of the script perhaps, that would do nothing from then on."""
    call = find(ast.parse(source), line, kind)
    if call is None or not _is_plain(call) or not all(_is_constant(_argument(call, name)) for name in changes):
        return None
    lines = source.splitlines(keepends=True)
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    edits: list[tuple[int, int, bytes]] = []
    missing = []
    for name, value in changes.items():
        node = _argument(call, name)
        if node is None and value not in DEFAULTS:
            missing.append(f"{name}={value!r}")
        elif node is not None:
            edits.append((*_span(lines, node), repr(value).encode()))
    if missing:
        at = max(_span(lines, node)[1] for node in (*call.args, *named.values()))
        edits.append((at, at, _added(lines, call, missing)))
    for begin, end, text in sorted(edits, reverse=True):
        source = source[:begin] + text + source[end:]
    return source if _says(source, call, kind, changes) else None


def find(tree: ast.AST, line: int, kind: str) -> ast.Call | None:
    """The call that builds the loader: the only one at this line that is named like it."""
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or node.lineno)
        if _name(node) in (kind, "DataLoader")
    ]
    return calls[0] if len(calls) == 1 else None


def _is_plain(call: ast.Call) -> bool:
    """All arguments can be seen: no * and no **, which might bring the same name a second time."""
    starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    return not starred and all(keyword.arg for keyword in call.keywords) and bool(call.args or call.keywords)


def _argument(call: ast.Call, name: str) -> ast.expr | None:
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    place = POSITIONS.get(name, len(call.args))
    return named.get(name) or (call.args[place] if place < len(call.args) else None)


def _is_constant(node: ast.expr | None) -> bool:
    return node is None or isinstance(node, ast.Constant)


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _span(lines: list[bytes], node: ast.expr) -> tuple[int, int]:
    """Offsets of a node in the source; positions of the parser are in bytes of UTF-8, as ours."""
    if node.end_lineno is None or node.end_col_offset is None:
        raise ValueError("a node without an end")
    begin = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    return begin, sum(map(len, lines[: node.end_lineno - 1])) + node.end_col_offset


def _added(lines: list[bytes], call: ast.Call, missing: list[str]) -> bytes:
    """New arguments after the last one: each on a line of its own if the last one is."""
    parts: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    last = max(parts, key=lambda node: (node.end_lineno or 0, node.end_col_offset or 0))
    text = lines[last.lineno - 1]
    indent = text[: len(text) - len(text.lstrip())]
    if last.lineno != call.lineno and last.col_offset == len(indent):
        newline = b"\r\n" if text.endswith(b"\r\n") else b"\n"
        return b"".join(b"," + newline + indent + argument.encode() for argument in missing)
    return b"".join(b", " + argument.encode() for argument in missing)


def _says(source: bytes, before: ast.Call, kind: str, changes: dict[str, Any]) -> bool:
    call = find(ast.parse(source), before.lineno, kind)
    if call is None:
        return False
    for name, value in changes.items():
        node = _argument(call, name)
        if (node is not None or value not in DEFAULTS) and not (isinstance(node, ast.Constant) and node.value == value):
            return False
    return len(call.args) == len(before.args)
