"""Errors a user can cause, caught once in `cli.main`.

UnstuckError            what failed, likely cause, next command
├── UsageError          the command line asks for something impossible       (exit 2)
└── OwnFault            an internal error in unstuck                         (exit 70)
"""

from __future__ import annotations


class UnstuckError(Exception):
    """What failed; `cause` and `next_command` say what to do about it."""

    exit_code = 2

    def __init__(self, what: str, *, cause: str = "", next_command: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.cause = cause
        self.next_command = next_command


class UsageError(UnstuckError):
    """The command line asks for something impossible."""


class OwnFault(UnstuckError):
    """An internal error in unstuck."""

    exit_code = 70
