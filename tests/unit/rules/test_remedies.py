"""The table of remedies: of rules there are, code that can be pasted, and shown beneath the fix."""

from __future__ import annotations

import ast

import pytest

import unstuck
from unstuck.model import Case, Fix, Where
from unstuck.report.screen import Screen
from unstuck.report.terminal import render
from unstuck.rules import RULES, rule_named
from unstuck.rules.diagnose import Diagnosis
from unstuck.rules.remedies import IN_LOADER, REMEDIES
from unstuck.rules.rule import Rule


def found(rule: Rule, where: Where, fix: str | Fix = "Mend it.") -> Fix:
    return rule.finding(severity="error", confidence=0.9, title="t", evidence=(), where=where, fix=fix).fix


@pytest.mark.parametrize("name", [*REMEDIES, *IN_LOADER])
def test_each_is_of_a_rule_and_code_of_public_names(name: str) -> None:
    assert rule_named(name) is not None
    new = "\n".join(line[1:] for line in {**REMEDIES, **IN_LOADER}[name].splitlines() if not line.startswith("-"))
    tree = ast.parse(new.replace("…, ", "").replace("…", "...") + ("\n    ..." if new.endswith(":") else ""))
    used = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)}
    assert used & set(unstuck.__all__)


def test_a_finding_has_the_remedy_of_its_rule() -> None:
    born, endless = rule_named("nonfinite-born"), rule_named("endless-epoch")
    assert born is not None
    assert endless is not None
    assert "unstuck.guard(optimizer)" in (found(born, Where()).diff or "")
    assert "unstuck.bounded(loader" in (found(endless, Where()).diff or "")
    assert found(born, Where(), Fix("Mend it.", "+ mended")).diff == "+ mended", "its own comes first"


def test_a_loader_is_the_remedy_only_for_what_happens_in_one() -> None:
    crash = rule_named("native-crash")
    assert crash is not None
    assert found(crash, Where(pid=3)).diff is None
    for where in (Where(pid=3, worker=0), Where(pid=3, sample=17)):
        assert 'unstuck.DataLoader(dataset, …, on_bad_sample="skip")' in (found(crash, where).diff or "")


def test_a_rule_without_one_has_none() -> None:
    others = [rule for rule in RULES if rule.name not in {*REMEDIES, *IN_LOADER}]
    assert others
    assert all(found(rule, Where(worker=1, sample=2)).diff is None for rule in others)


def test_it_is_shown_beneath_the_fix() -> None:
    rule = rule_named("exploding-gradient")
    assert rule is not None
    finding = rule.finding(
        severity="error", confidence=0.9, title="t", evidence=("e",), where=Where(), fix="Lower the rate."
    )
    shown = render(Case(), Diagnosis((finding,)), Screen(width=100, color=False, unicode=True))
    assert shown.index("Lower the rate.") < shown.index("+unstuck.guard(optimizer)")
