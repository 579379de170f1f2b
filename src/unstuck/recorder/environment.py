"""Children inherit the recorder also when the script rewrites PYTHONPATH: its own view of it stays as it set it."""

from __future__ import annotations

import os

from . import guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    Word = str | bytes | os.PathLike[str] | os.PathLike[bytes]


def keep(site: str) -> None:
    """Wrap os.putenv/os.unsetenv, through which os.environ writes: what execs gets our folder, os.environ not."""
    putenv, unsetenv = os.putenv, os.unsetenv
    ours = os.fsencode(site)

    def keep_putenv(name: Word, value: Word, /) -> None:
        try:
            if os.fsencode(name) == b"PYTHONPATH":
                raw = os.fsencode(value)
                if ours not in raw.split(b":"):
                    value = ours + b":" + raw if raw else ours
        except Exception as fault:
            guard.off("environment", fault)
        return putenv(name, value)

    def keep_unsetenv(name: Word, /) -> None:
        try:
            ours_too = os.fsencode(name) == b"PYTHONPATH"
        except Exception as fault:
            ours_too = False
            guard.off("environment", fault)
        return putenv(name, ours) if ours_too else unsetenv(name)

    os.putenv, os.unsetenv = keep_putenv, keep_unsetenv

    def remove() -> None:
        os.putenv, os.unsetenv = putenv, unsetenv

    guard.on("environment", remove)
