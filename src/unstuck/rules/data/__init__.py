"""Something is wrong in the data: the rules of the family `data`, in causal order."""

from __future__ import annotations

from unstuck.rules.data import (
    batch_aliases_dataset,
    batches_not_shuffled,
    category_as_number,
    constant_feature,
    file_handle_shared_across_workers,
    labels_imbalanced,
    missing_values,
    outlier_samples,
    rows_lost_in_shuffle,
    unscaled_input,
)
from unstuck.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    file_handle_shared_across_workers.RULE,
    batch_aliases_dataset.RULE,
    rows_lost_in_shuffle.RULE,
    missing_values.RULE,
    unscaled_input.RULE,
    batches_not_shuffled.RULE,
    constant_feature.RULE,
    outlier_samples.RULE,
    labels_imbalanced.RULE,
    category_as_number.RULE,
)
