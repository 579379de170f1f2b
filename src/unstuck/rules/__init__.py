"""The one table of rules, in causal order: what stands higher is looked at first when both would fit."""

from __future__ import annotations

from unstuck.rules.rule import Rule

RULES: tuple[Rule, ...] = ()


def rule_named(name: str) -> Rule | None:
    return next((rule for rule in RULES if rule.name == name), None)
