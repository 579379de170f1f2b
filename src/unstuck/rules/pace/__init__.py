"""It crawls: the rules of the family `pace`, in causal order."""

from __future__ import annotations

from unstuck.rules.pace import starved_for_data, workers_take_turns
from unstuck.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    workers_take_turns.RULE,
    starved_for_data.RULE,
)
