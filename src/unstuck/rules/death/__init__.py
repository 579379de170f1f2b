"""It died: the rules of the family `death`, in causal order."""

from __future__ import annotations

from unstuck.rules.death import memory_leak_in_loop, out_of_memory_kill
from unstuck.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    out_of_memory_kill.RULE,
    memory_leak_in_loop.RULE,
)
