"""The source of one function, parsed by itself: its file may be long, and is read for this alone."""

from __future__ import annotations

import ast
import textwrap
from functools import lru_cache
from itertools import islice

from . import inlined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType

    Function = ast.FunctionDef | ast.AsyncFunctionDef

LARGEST = 4_000_000
"""Bytes of a file."""
LINES = 500
"""Of a function."""


@lru_cache(maxsize=256)
def definition(code: CodeType) -> Function | None:
    """A function as it is written, or None where that cannot be read."""
    source = inlined.source_bytes(code.co_filename, LARGEST)
    if source is None:
        return None
    lines = source.splitlines(keepends=True)[code.co_firstlineno - 1 :][:LINES]
    first = next((n for n, line in enumerate(lines) if line.lstrip().startswith((b"def ", b"async def "))), None)
    if first is None:
        return None
    lines = lines[first:]
    indent = len(lines[0]) - len(lines[0].lstrip())
    end = next((n for n, line in enumerate(islice(lines, 1, None), 1) if _ends(line, indent)), len(lines))
    tree = inlined.parsed(textwrap.dedent(b"".join(lines[:end]).decode("utf-8", "replace")))
    written = tree.body[0] if tree is not None and tree.body else None
    if not isinstance(written, (ast.FunctionDef, ast.AsyncFunctionDef)) or written.name != code.co_name:
        return None
    return written


def _ends(line: bytes, indent: int) -> bool:
    text = line.strip()
    return bool(text) and not text.startswith((b"#", b")", b"]", b"}")) and len(line) - len(line.lstrip()) <= indent
