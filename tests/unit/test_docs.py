"""The pages people find: links and anchors lead somewhere, the causes are all there, every command is one."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import unstuck
from tests.documented import DOCS, PAGES, ROOT, Command, commands
from unstuck.cli import COMMANDS, build_parser
from unstuck.cli.options import read
from unstuck.rules import RULES

LINK = re.compile(r"(?<!`)\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+)\)")
COLUMNS_OF_THE_SITE = 90
TARGETS = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)


def prose(page: Path) -> str:
    """Without what is quoted."""
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Of a page's headings, as mkdocs and GitHub make them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    plain = (re.sub(r"[^\w\s-]", "", heading.lower()).strip() for heading in headings)
    return {re.sub(r"\s+", "-", heading) for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(prose(page)):
        if link.startswith(("https://", "http://")):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        if page.is_relative_to(ROOT / "docs"):
            assert target.is_relative_to(ROOT / "docs"), f"{link} is not on the site"
        if anchor:
            assert anchor in anchors(target), link


def test_links_are_found() -> None:
    assert sum(len(LINK.findall(prose(page))) for page in PAGES) > 400


def test_every_cause_is_in_the_table_of_causes() -> None:
    causes = (ROOT / "docs" / "causes.md").read_text()
    assert [rule.name for rule in RULES if f"(rules/{rule.name}.md)" not in causes] == []
    assert f"[{len(RULES)} causes]" in (ROOT / "README.md").read_text()


def test_every_public_name_is_in_the_reference() -> None:
    named = re.findall(r"^::: unstuck\.(\w+)$", (DOCS / "api.md").read_text(), re.MULTILINE)
    assert sorted(named) == sorted(set(unstuck.__all__) - {"__version__"})


def test_the_readme_fits_a_terminal() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert [line for line in lines if len(line) > 80 and not line.startswith(("|", "["))] == []
    first_screen = "\n".join(lines[:24])
    assert all(word in first_screen for word in ("pip install", "Python ≥", "torch ≥", "Linux", "unstuck run"))


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.parent in (DOCS, DOCS / "recipes")], ids=lambda p: p.name
)
def test_blocks_are_read_without_scrolling(page: Path) -> None:
    blocks = re.findall(r"^```(?:console|yaml|bash|text)\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    assert [line for block in blocks for line in block.splitlines() if len(line) > COLUMNS_OF_THE_SITE] == []


def test_the_picture_is_small_and_whole() -> None:
    picture = (ROOT / "docs" / "answer.svg").read_text()
    assert len(picture) <= 100_000
    assert "http" not in picture.replace("http://www.w3.org/2000/svg", "").replace("https://www.textualize.io", "")


@pytest.mark.parametrize("command", commands(), ids=lambda command: str(command.text))
def test_a_documented_command_is_one(command: Command) -> None:
    words = shlex.split(re.sub(r"\s[<>|&].*", "", command.text), comments=True)
    while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
        del words[0]
    if words[0] == "make":
        assert words[1] in TARGETS
    elif words[0] == "unstuck" and words[1:]:
        assert words[1] in (*COMMANDS, "--help")
        if read(words[1:]) is None and words[1] != "--help":
            _, unknown = build_parser((words[1],)).parse_known_args(words[1:])
            assert unknown == []
