"""It never ends: the rules of the family `loop`, in causal order."""

from __future__ import annotations

from unstuck.rules.loop import (
    duplicate_samples_across_workers,
    empty_loader,
    endless_epoch,
    graph_grows_every_step,
    loader_exhausted,
    loader_rebuilt_every_step,
    same_batch_every_step,
    stale_dataset_in_workers,
    step_time_grows,
    stop_condition_never_met,
)
from unstuck.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    stop_condition_never_met.RULE,
    endless_epoch.RULE,
    loader_exhausted.RULE,
    empty_loader.RULE,
    same_batch_every_step.RULE,
    loader_rebuilt_every_step.RULE,
    duplicate_samples_across_workers.RULE,
    stale_dataset_in_workers.RULE,
    graph_grows_every_step.RULE,
    step_time_grows.RULE,
)
