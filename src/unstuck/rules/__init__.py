"""The one table of rules, in causal order: what stands higher is the cause when both would fit."""

from __future__ import annotations

from unstuck.rules import data, death, hang, learning, loop, numerics
from unstuck.rules.rule import Rule

RULES: tuple[Rule, ...] = (*death.RULES, *hang.RULES, *loop.RULES, *data.RULES, *numerics.RULES, *learning.RULES)


def rule_named(name: str) -> Rule | None:
    return next((rule for rule in RULES if rule.name == name), None)
