"""Everything a user reads is in the words a colleague would use: none of the worst ones comes back.

Read are the string literals (titles, evidence, fixes, errors, help) and the docstrings of modules (the pages of rules)
of the whole package, and what is written for people by hand: README, CONTRIBUTING, CHANGELOG, docs. Demos are left out:
they are written as people write.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "unstuck"

WORDS = {  # not: but
    r"data sets?": "dataset",
    r"for ever": "forever",
    r"no numbers?": "NaN",
    r"want of memory": "OOM-killed, or out of memory",
    r"(is|are|was|were|been|be|being) told": "what was said or set, and who said it",
    r"(is|are|was|were|been|be) asked for": "requested",
    r"(is|are|was|were|been|be) given": "gets",
    r"given (something )?else than": "expects X but gets Y",
    r"beside (it|its|them|that of)": "compared with",
    r"wants? (no|a) gradients?": "requires a gradient",
    r"told to want": "requires_grad_() was called",
    r"is no more": "is gone",
    r"of ours": "internal error in unstuck",
    r"comes? to its( own| good)* end": "finishes",
    r"see to it": "make sure",
    r"other party": "the producer, or the process that …",
    r"It does not\.": "Why it matters: what it costs the run",
    r"It goes on,": "Why it matters: what it costs the run",
}


MODULES = [path for path in sorted(SOURCE.rglob("*.py")) if path.parent.name != "demos"]
PAGES = [
    SOURCE / "explain/messages.txt",
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs/recipes").glob("*.md")),
]


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of a module's docstring and of every string that is not another docstring."""
    tree = ast.parse(source)
    page = tree.body[0].value if tree.body and isinstance(tree.body[0], ast.Expr) else None
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)} - {id(page)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in node.values}
            parts = (part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def bad_words(texts: Iterable[tuple[int, str]]) -> list[str]:
    found = []
    for line, text in texts:
        plain = " ".join(text.split())
        for pattern, better in WORDS.items():
            match = re.search(rf"\b{pattern}(?!\w)", plain, re.IGNORECASE)
            if match is not None:
                found.append(f"line {line}: {match[0]!r} in {plain[:100]!r}; say: {better}")
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_words(path: Path) -> None:
    assert bad_words(texts(path.read_text())) == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_words_of_pages(path: Path) -> None:
    paragraphs = path.read_text().split("\n\n")
    assert bad_words(enumerate(paragraphs, 1)) == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_why_it_matters_has_an_answer(path: Path) -> None:
    page = (ast.get_docstring(ast.parse(path.read_text())) or "").partition("Why it matters\n")[2]
    assert not page.strip().startswith(("It does not", "Nothing stops", "It goes on"))


def test_bad_words_are_found_in_pages_and_messages_but_not_in_other_docstrings() -> None:
    source = '''"""A data set that lasts for
    ever."""
    TITLE = f"{count} losses are no number"
    def f():
        """Which is no number."""
    '''
    found = bad_words(texts(textwrap.dedent(f"    {source}")))
    assert [line.split("'")[1] for line in found] == ["data set", "for ever", "no number"]
