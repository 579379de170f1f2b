"""The data: the rules of the family `data`, in causal order."""

from __future__ import annotations

from unstuck.rules.data import (
    missing_values,
    unscaled_input,
)
from unstuck.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    missing_values.RULE,
    unscaled_input.RULE,
)
