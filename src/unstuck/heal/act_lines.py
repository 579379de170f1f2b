"""What a remedy did, on standard error: each of the first acts, then fewer and fewer."""

from __future__ import annotations

import sys

FIRST_ACTS = 5  # said one by one; from then on the 10th, 20th, 50th, 100th …


def say(remedy: str, text: str) -> None:
    try:
        print(f"unstuck.{remedy}: {text}", file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):  # no standard error is no reason to end a training
        pass


def worth_a_line(number: int) -> bool:
    """Of the act with this number, counted from 1."""
    while number >= 100 and number % 10 == 0:
        number //= 10
    return number <= FIRST_ACTS or number in (10, 20, 50)
