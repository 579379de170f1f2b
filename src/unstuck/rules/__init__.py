"""The one table of rules, in causal order: what stands higher is the cause when both would fit."""

from __future__ import annotations

from dataclasses import replace

from unstuck.rules import data, death, hang, learning, loop, numerics, pace
from unstuck.rules.rule import Rule

_SLOW = frozenset(rule.name for rule in pace.RULES)
_HANGS = tuple(replace(rule, explains=rule.explains | _SLOW) for rule in hang.RULES)  # what stands is also slow

RULES: tuple[Rule, ...] = (
    *death.RULES,
    *_HANGS,
    *loop.RULES,
    *pace.RULES,
    *data.RULES,
    *numerics.RULES,
    *learning.RULES,
)


def rule_named(name: str) -> Rule | None:
    return next((rule for rule in RULES if rule.name == name), None)
