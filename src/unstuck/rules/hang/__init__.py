"""Nothing moves: the rules of the family `hang`, in causal order."""

from __future__ import annotations

from unstuck.rules.hang import (
    file_lock_held,
    lock_lost_in_fork,
    lock_never_released,
    main_spins,
    pipe_full,
    progress_unknown,
    queue_not_drained,
    sample_retries,
    sample_spins,
    stale_lock_file,
    waits_for_nobody,
    waits_on_device,
    waits_on_input,
    waits_on_io,
    waits_on_rank,
)
from unstuck.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    file_lock_held.RULE,
    stale_lock_file.RULE,
    queue_not_drained.RULE,
    pipe_full.RULE,
    lock_lost_in_fork.RULE,
    lock_never_released.RULE,
    sample_retries.RULE,
    sample_spins.RULE,
    waits_on_input.RULE,
    waits_on_rank.RULE,
    waits_for_nobody.RULE,
    waits_on_io.RULE,
    waits_on_device.RULE,
    main_spins.RULE,
    progress_unknown.RULE,
)
