"""What the rules on deaths say of a run."""

from __future__ import annotations

from unstuck.model import Case
from unstuck.rules import death
from unstuck.rules.diagnose import diagnose

MEMORY = ("out-of-memory-kill", "memory-leak-in-loop", "cuda-out-of-memory")


def said(case: Case) -> list[tuple[str, str]]:
    return [(f.rule, f.severity) for f in diagnose(case, death.RULES).findings if f.rule not in MEMORY]
