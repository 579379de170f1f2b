"""Several ranks: the rules of the family `ranks`, in causal order."""

from __future__ import annotations

from unstuck.rules.ranks import (
    collectives_differ,
    rank_exited_early,
    rank_skips_collective,
    straggler_rank,
    uneven_batches,
    unused_parameters,
    world_never_formed,
)
from unstuck.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    world_never_formed.RULE,
    unused_parameters.RULE,
    uneven_batches.RULE,
    rank_exited_early.RULE,
    collectives_differ.RULE,
    rank_skips_collective.RULE,
    straggler_rank.RULE,
)
