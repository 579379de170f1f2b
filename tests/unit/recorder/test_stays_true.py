"""The test of a generator's `while`: proven to stay true by what the body assigns, or not."""

from __future__ import annotations

import ast
import textwrap

import pytest

from unstuck.recorder.probes.loops.endless_stream import endless_statement

GOES_ROUND = {
    "wrapped by the last start": """
        start = 0
        while start + size + 1 <= ids.size(1):
            yield ids[:, start : start + size]
            start = (start + size) % (ids.size(1) - size)
    """,
    "wrapped in a statement of its own": """
        frame, last = 0, len(rows) - 32
        while frame <= last:
            yield rows[frame : frame + 32]
            frame += 24
            frame %= last
    """,
    "set to 0": """
        i = 0
        while i < len(rows):
            yield rows[i : i + size]
            i += size
            if i >= len(rows):
                i = 0
    """,
    "set to 0 before it is used": """
        i, n = 0, len(rows)
        while i + size <= n:
            yield rows[i : i + size]
            i += size
            if i + size > n:
                i = 0
                continue
    """,
    "by an expression": """
        i = 0
        n = len(rows)
        while i < n:
            yield rows[i]
            i = 0 if i + 1 >= len(rows) else i + 1
    """,
    "clamped": """
        i = 0
        while i < len(rows):
            yield rows[i]
            i = min(i + size, len(rows) - 1)
    """,
    "counted down": """
        left = 8
        while left > 0:
            yield left
            left -= 1
            if left == 0:
                left = 8
    """,
    "never moved": """
        i = 0
        while i < len(rows):
            yield rows[i : i + size]
    """,
}
MAY_END = {
    "it moves": """
        i = 0
        while i < len(rows):
            yield rows[i]
            i += size
    """,
    "wrapped by more than is tested": """
        i = 0
        while i < len(rows):
            yield rows[i]
            i = (i + 1) % (len(rows) + 1)
    """,
    "another is counted": """
        i, rounds = 0, 0
        while rounds < 3:
            yield rows[i]
            i = (i + 1) % len(rows)
            if i == 0:
                rounds += 1
    """,
    "left": """
        i = 0
        while i < len(rows):
            yield rows[i]
            i = (i + 1) % len(rows)
            if i == 0:
                break
    """,
    "ended by an error": """
        i = 0
        while i < len(rows):
            yield rows[i]
            i = (i + 1) % len(rows)
            if i == 0:
                raise StopIteration
    """,
    "set to 0 on one way only": """
        i = 0
        while i < len(rows):
            yield rows[i]
            i += 1
            if i >= len(rows) and again:
                i = 0
    """,
    "set to something that is not known": """
        i = 0
        while i < len(rows):
            yield rows[i]
            i = after(i)
    """,
    "the rows become fewer": """
        i = 0
        while i < len(rows):
            yield rows.pop()
    """,
    "the rows are others": """
        i = 0
        while i < len(rows):
            yield rows[i]
            rows = rows[size:]
    """,
    "the bound comes down": """
        i, n = 0, len(rows)
        while i < n:
            yield rows[i]
            i = (i + 1) % len(rows)
            n -= 1
    """,
    "by a loop in it": """
        i = 0
        while i < len(rows):
            for _ in range(size):
                yield rows[i]
                i += 1
    """,
    "an attribute that others move": """
        while self.at < self.count:
            yield self.rows[self.at]
            self.advance()
    """,
    "rows that are handed on": """
        i = 0
        while i < len(rows):
            yield rows[i]
            take_from(rows)
    """,
    "a flag": """
        while not stopped:
            yield rows
    """,
    "not a whole number": """
        x = 1.0
        while x > 0:
            yield x
            x = x / 2
    """,
    "another direction": """
        i = 5
        while i >= 0:
            yield i
            i = i % 3 - 1
    """,
}


def statement_of(body: str) -> ast.stmt | None:
    source = f"def batches(rows, ids, size):\n{textwrap.indent(textwrap.dedent(body), '    ')}"
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    return endless_statement(function)


@pytest.mark.parametrize("name", GOES_ROUND)
def test_its_test_stays_true(name: str) -> None:
    assert isinstance(statement_of(GOES_ROUND[name]), ast.While)


@pytest.mark.parametrize("name", MAY_END)
def test_it_may_end(name: str) -> None:
    assert statement_of(MAY_END[name]) is None
