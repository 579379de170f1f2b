"""Families of findings that are treated alike. A module of its own: the supervisor needs no rule to know it."""

from __future__ import annotations

IN_VAIN = frozenset(("data", "numerics", "learning"))
"""About a run that goes on, but to no use."""
