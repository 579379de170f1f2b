"""The table of rules: distinct names, a page each, and a faulty script with a healthy twin."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import sys
from pathlib import Path

import pytest

from tests.corpus import FAULTY
from tests.unit.rules.record_cases import case_file
from unstuck.rules import RULES, rule_named
from unstuck.rules.rule import HEADINGS, Rule

DOCS = Path(__file__).parents[3] / "docs"


def test_names_are_distinct_and_found() -> None:
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)
    assert all(rule_named(name) is not None for name in names)
    assert rule_named("no-such-rule") is None


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_page_has_the_fixed_headings_in_order(rule: Rule) -> None:
    lines = rule.page.splitlines()
    assert lines[0].startswith(f"{rule.name}: ")
    assert [line for line in lines if line in HEADINGS] == list(HEADINGS)
    assert not [line for line in lines if line.startswith((" " * 5, "    - ", "    * ", "    | "))], "paragraphs alone"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_file_is_named_for_the_rule(rule: Rule) -> None:
    assert rule.decide.__module__ == f"unstuck.rules.{rule.family}.{rule.name.replace('-', '_')}"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_it_has_a_faulty_script_and_a_saved_case(rule: Rule) -> None:
    scripts = [script for script in FAULTY.values() if script.rules[0] == rule.name and not script.blind]
    assert scripts or rule.asks_only
    for script in scripts:
        # One that needs a device, or a machine of its own, can be recorded only where there is one.
        assert case_file(script.name).exists() or script.device or script.alone


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_imports_no_other_rule(rule: Rule) -> None:
    """What two rules need is in a helper module; which of them speaks is said by `explains`."""
    modules = {other.decide.__module__ for other in RULES}
    source = inspect.getsource(sys.modules[rule.decide.__module__])
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    names = {f"{node.module}.{alias.name}" for node in imports for alias in node.names}
    assert not modules & (names | {node.module for node in imports})


def test_what_is_explained_exists() -> None:
    names = {rule.name for rule in RULES}
    assert all(rule.explains <= names for rule in RULES)


def test_doc_pages_are_those_of_the_rules_and_messages() -> None:
    spec = importlib.util.spec_from_file_location("write_pages", DOCS / "write_pages.py")
    assert spec is not None
    assert spec.loader is not None
    writer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(writer)
    written = writer.pages()
    for path, text in written.items():
        assert path.read_text() == text, f"{path.name} is out of date: make pages"
    for folder in ("rules", "messages"):
        pages = {path for path in written if path.parent.name == folder}
        assert set((DOCS / folder).glob("*.md")) == pages, f"docs/{folder} has pages of what is no more"
