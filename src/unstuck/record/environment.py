"""Children inherit the recorder also when the script rewrites PYTHONPATH: its own view of it stays as it set it."""

import os

from . import probes


def keep(site):
    """Wrap os.putenv/os.unsetenv, through which os.environ writes: what execs gets our folder, os.environ not."""
    putenv, unsetenv = os.putenv, os.unsetenv
    ours = os.fsencode(site)

    def keep_putenv(name, value, /):
        try:
            if os.fsencode(name) == b"PYTHONPATH":
                raw = os.fsencode(value)
                if ours not in raw.split(b":"):
                    value = ours + b":" + raw if raw else ours
        except Exception as fault:
            probes.off("environment", fault)
        return putenv(name, value)

    def keep_unsetenv(name, /):
        try:
            ours_too = os.fsencode(name) == b"PYTHONPATH"
        except Exception as fault:
            ours_too = False
            probes.off("environment", fault)
        return putenv(name, ours) if ours_too else unsetenv(name)

    os.putenv, os.unsetenv = keep_putenv, keep_unsetenv

    def remove():
        os.putenv, os.unsetenv = putenv, unsetenv

    probes.on("environment", remove)
