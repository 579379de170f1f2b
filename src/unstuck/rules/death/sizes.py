"""Amounts of memory in words."""

from __future__ import annotations

import math

from unstuck.text import size as size


def flag(value: float) -> str:
    """A size to set, rounded up to a power of two: 64m, 2g."""
    megabytes = max(64, 2 ** math.ceil(math.log2(max(value, 1) / 2**20)))
    return f"{megabytes // 1024}g" if megabytes >= 1024 else f"{megabytes}m"
