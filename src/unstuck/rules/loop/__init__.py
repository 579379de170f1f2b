"""It never ends: the rules of the family `loop`, in causal order."""

from __future__ import annotations

from unstuck.rules.rule import Rule

RULES: tuple[Rule, ...] = ()
