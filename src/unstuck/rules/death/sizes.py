"""Amounts of memory in words."""

from __future__ import annotations

import math


def size(value: float) -> str:
    """3.1 MB, 64 MB, 1.5 GB: powers of 1024, as `df -h` and `docker --shm-size` count."""
    for unit in ("bytes", "KB", "MB", "GB"):
        if value < 1024 or unit == "GB":
            return f"{value:.0f} {unit}" if unit == "bytes" or value >= 100 else f"{value:.2g} {unit}"
        value /= 1024
    return ""


def flag(value: float) -> str:
    """A size to set, rounded up to a power of two: 64m, 2g."""
    megabytes = max(64, 2 ** math.ceil(math.log2(max(value, 1) / 2**20)))
    return f"{megabytes // 1024}g" if megabytes >= 1024 else f"{megabytes}m"
