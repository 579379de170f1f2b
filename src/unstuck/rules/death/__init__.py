"""It died: the rules of the family `death`, in causal order."""

from __future__ import annotations

from unstuck.rules.death import (
    batchnorm_batch_of_one,
    cuda_out_of_memory,
    disk_full,
    ended_from_outside,
    label_out_of_range,
    memory_leak_in_loop,
    native_crash,
    out_of_memory_kill,
    sample_raises,
    shared_memory_full,
    spawn_without_main_guard,
    too_many_open_files,
    uncaught_exception,
    unpicklable_dataset,
)
from unstuck.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    out_of_memory_kill.RULE,
    cuda_out_of_memory.RULE,
    memory_leak_in_loop.RULE,
    spawn_without_main_guard.RULE,
    unpicklable_dataset.RULE,
    too_many_open_files.RULE,
    disk_full.RULE,
    shared_memory_full.RULE,
    native_crash.RULE,
    label_out_of_range.RULE,
    batchnorm_batch_of_one.RULE,
    sample_raises.RULE,
    ended_from_outside.RULE,
    uncaught_exception.RULE,
)
