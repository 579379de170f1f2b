"""Something is wrong in the data: the rules of the family `data`, in causal order."""

from __future__ import annotations

from unstuck.rules.data import batch_aliases_dataset, file_handle_shared_across_workers
from unstuck.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    file_handle_shared_across_workers.RULE,
    batch_aliases_dataset.RULE,
)
