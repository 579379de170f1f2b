"""It crawls: the rules of the family `pace`, in causal order."""

from __future__ import annotations

from unstuck.rules.pace import (
    dataset_copied_to_workers,
    slow_host_to_device,
    starved_for_data,
    thread_oversubscription,
    too_few_workers,
    too_many_workers,
    workers_restart_every_epoch,
    workers_take_turns,
)
from unstuck.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    workers_take_turns.RULE,
    dataset_copied_to_workers.RULE,
    workers_restart_every_epoch.RULE,
    thread_oversubscription.RULE,
    too_many_workers.RULE,
    too_few_workers.RULE,
    starved_for_data.RULE,
    slow_host_to_device.RULE,
)
