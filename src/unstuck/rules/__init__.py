"""The one table of rules, in causal order: what stands higher is the cause when both would fit."""

from __future__ import annotations

from dataclasses import replace

from unstuck.rules import data, death, hang, learning, loop, numerics, pace, ranks
from unstuck.rules.rule import Rule

_SLOW = frozenset(rule.name for rule in pace.RULES)
_RANKS = tuple(
    replace(rule, explains=_SLOW) if rule.name == "straggler-rank" else rule for rule in ranks.RULES
)  # the slow rank is slow in what these say
_HANGS = tuple(replace(rule, explains=rule.explains | _SLOW) for rule in hang.RULES)  # what stands is also slow

RULES: tuple[Rule, ...] = (
    *death.RULES,
    *_RANKS,
    *_HANGS,
    *loop.RULES,
    *pace.RULES,
    *data.RULES,
    *numerics.RULES,
    *learning.RULES,
)


def rule_named(name: str) -> Rule | None:
    return next((rule for rule in RULES if rule.name == name), None)
