"""The numbers broke: the rules of the family `numerics`, in causal order."""

from __future__ import annotations

from unstuck.rules.rule import Rule

RULES: tuple[Rule, ...] = ()
