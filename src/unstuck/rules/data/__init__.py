"""The data: the rules of the family `data`, in causal order."""

from __future__ import annotations

from unstuck.rules.data import (
    batches_not_shuffled,
    category_as_number,
    constant_feature,
    labels_imbalanced,
    missing_values,
    outlier_samples,
    unscaled_input,
)
from unstuck.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    missing_values.RULE,
    unscaled_input.RULE,
    batches_not_shuffled.RULE,
    constant_feature.RULE,
    outlier_samples.RULE,
    labels_imbalanced.RULE,
    category_as_number.RULE,
)
