"""It moves and does not learn: the rules of the family `learning`, in causal order."""

from __future__ import annotations

from unstuck.rules.rule import Rule

RULES: tuple[Rule, ...] = ()
