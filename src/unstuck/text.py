"""Amounts and places in words, the same in every finding, page and command."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


# As Linux counts them, on which every run was watched: a saved one may be read on a system with other numbers.
SIGHUP, SIGINT, SIGKILL, SIGTERM = 1, 2, 9, 15
_SIGNALS = {
    SIGHUP: "SIGHUP",
    SIGINT: "SIGINT",
    3: "SIGQUIT",
    4: "SIGILL",
    5: "SIGTRAP",
    6: "SIGABRT",
    7: "SIGBUS",
    8: "SIGFPE",
    SIGKILL: "SIGKILL",
    10: "SIGUSR1",
    11: "SIGSEGV",
    12: "SIGUSR2",
    13: "SIGPIPE",
    14: "SIGALRM",
    SIGTERM: "SIGTERM",
    19: "SIGSTOP",
    24: "SIGXCPU",
    25: "SIGXFSZ",
    31: "SIGSYS",
}


def signal_name(number: int) -> str:
    return _SIGNALS.get(number, f"signal {number}")


def seconds(value: float) -> str:
    """A duration as a person says it: 40 µs, 2.1 ms, 0.5 s, 12 s, 3 min 20 s, 1 h 2 min."""
    if value < 1e-3:
        return f"{value * 1e6:.0f} µs"
    if value < 0.0995:
        return f"{value * 1e3:.2g} ms" if value < 0.00995 else f"{value * 1e3:.0f} ms"
    if value < 9.95:
        return f"{value:.1f} s"
    whole = round(value)
    if whole < 120:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def size(value: float) -> str:
    """Bytes: 3.1 MB, 64 MB, 1.5 GB. Powers of 1024, as `free -h`, `df -h` and `docker --shm-size` count."""
    for unit in ("bytes", "KB", "MB"):
        if value < 1000 if unit == "bytes" else value < 1023.5:
            return f"{value:.0f} {unit}" if unit == "bytes" or value >= 100 else f"{value:.2g} {unit}"
        value /= 1024
    return f"{value:.0f} GB" if value >= 100 else f"{value:.2g} GB"


def count(number: int, noun: str) -> str:
    """1 step, 1,200 steps."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def listed(names: Sequence[object], total: int | None = None, shown: int = 8) -> str:
    """The first of them, and how many more there are: 3, 5, 8 and 12 more."""
    rest = (len(names) if total is None else total) - min(len(names), shown)
    first = ", ".join(map(str, names[:shown]))
    return f"{first} and {rest:,} more" if rest > 0 else first


def spot(file: str, line: int, function: str = "") -> str:
    """data.py:31 in Shard.__getitem__; at module level the line alone."""
    at = f"{os.path.basename(file)}:{line}"
    return at if function in ("<module>", "") else f"{at} in {function}"


def in_sentence(title: str) -> str:
    """A title, to be read on in the middle of a sentence: its first word is written small, if it is one."""
    first, _, rest = title.partition(" ")
    return f"{first.lower()} {rest}".strip() if first.isalpha() and first.istitle() else title
