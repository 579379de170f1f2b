"""tests/faults/expected.json is as tests/faults/README.md says: scripts, fields, lines."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from tests.conftest import FAULTS
from tests.corpus import EXPECTED, FAULTY, HEALTHY, SILENT, Faulty, Silent
from unstuck.rules import rule_named

RUNS = {"faulty", "healthy", "attach"}


def scripts(folder: str) -> set[str]:
    return {path.stem for path in (FAULTS / folder).glob("*.py")}


def test_every_entry_has_its_scripts_and_every_script_its_entry() -> None:
    assert scripts("faulty") == scripts("healthy") == set(FAULTY) == set(HEALTHY)
    assert scripts("silent") == set(SILENT)


def test_entries_are_sorted() -> None:
    for section in ("faults", "silent"):
        assert list(EXPECTED[section]) == sorted(EXPECTED[section])


@pytest.mark.parametrize("script", FAULTY.values(), ids=lambda script: script.name)
def test_faulty_entry_is_sound(script: Faulty) -> None:
    rules = [rule_named(name) for name in script.rules]
    assert all(rules)
    assert rules[0] is not None
    assert rules[0].family == script.family
    length = len(script.path.read_text().splitlines())
    assert all(1 <= spot[0] <= spot[1] <= length for spot in (script.line, script.blocked) if spot is not None)
    assert script.among in ("loud", "standing", "family")
    assert script.severity in ("error", "warning", "info", "loud", None)
    assert set(script.default_run) <= RUNS
    assert "attach" not in script.default_run or script.family == "hang"
    assert "PY SCRIPT" in script.launch


def test_every_set_of_checks_is_used() -> None:
    entries = [*EXPECTED["faults"].values(), *EXPECTED["silent"].values()]
    assert {entry.get("checks", entry.get("family", "silent")) for entry in entries} == set(EXPECTED["checks"])


def test_every_field_is_explained() -> None:
    """An unknown field is an error where the entry is read; here: the page lists those that there are."""
    readme = (FAULTS / "README.md").read_text()
    explained = {name for row in re.findall(r"^\| (`.*?`) \|", readme, re.M) for name in re.findall(r"`(\w+)`", row)}
    known = {field.name for kind in (Faulty, Silent) for field in fields(kind)}
    assert explained == known - {"name"}


def test_default_run_has_each_kind() -> None:
    """Of each set of checks a faulty script, of most a healthy twin, and silent scripts of both sets."""

    def kinds(section: str, run: str) -> set[str]:
        entries = EXPECTED[section].values()
        return {e.get("checks", e.get("family", "silent")) for e in entries if run in e.get("default_run", ())}

    faults = set(EXPECTED["checks"]) - {"blind", "silent", "silent-learning"}
    assert kinds("faults", "faulty") == faults
    assert kinds("faults", "healthy") == faults - {"out-of-memory"}
    assert kinds("silent", "healthy") == {"silent", "silent-learning"}
