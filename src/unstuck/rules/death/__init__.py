"""It died: the rules of the family `death`, in causal order."""

from __future__ import annotations

from unstuck.rules.rule import Rule

RULES: tuple[Rule, ...] = ()
