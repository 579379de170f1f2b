"""Children inherit the recorder whatever environment the script makes for them; what it sees of its own stays its own.

What execs gets our folder on PYTHONPATH and the place of the flight files; os.environ does not show the folder.
"""

from __future__ import annotations

import os
import sys

from . import guard, imports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Word = str | bytes | os.PathLike[str] | os.PathLike[bytes]
    Words = Sequence[Word]

PATH, FOLDER, TRACE = b"PYTHONPATH", b"UNSTUCK_FLIGHT_DIR", b"UNSTUCK_TRACE_NAN"
ADDED = b"UNSTUCK_ADDED"  # set where the script gave its child an environment without us: the child is not to see ours
EMPTY = b"empty"  # … in which PYTHONPATH was there, with nothing in it
ENTRIES = 32  # of PATH, to find what a name stands for


def keep(site: str, folder: str) -> None:
    """Wrap what os.environ writes through, and what starts programs with an environment of their own."""
    kept = Kept(site, folder)
    originals: list[tuple[Any, str, Any]] = []

    def put(owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
        original = getattr(owner, name, None)
        if original is not None:
            originals.append((owner, name, original))
            setattr(owner, name, wrap(original))

    def remove() -> None:
        for owner, name, original in originals:
            setattr(owner, name, original)

    def follow(subprocess: Any) -> None:
        import _posixsubprocess

        for owner, name in ((_posixsubprocess, "fork_exec"), (subprocess, "_fork_exec")):
            put(owner, name, kept.forking)

    guard.on("environment", remove)
    put(os, "putenv", kept.putting)
    put(os, "unsetenv", lambda unsetenv: kept.unsetting(unsetenv, originals[0][2]))
    for name in ("execve", "posix_spawn", "posix_spawnp"):
        put(os, name, kept.starting)
    kept.hide()
    imports.when_imported("subprocess", follow)


class Kept:
    """What children need of us."""

    __slots__ = ("added", "ours", "site")

    def __init__(self, site: str, folder: str) -> None:
        self.site = os.fsencode(site)
        self.ours = {FOLDER: os.fsencode(folder)}
        if TRACE in os.environb:
            self.ours[TRACE] = os.environb[TRACE]
        self.added = os.environb.get(ADDED)

    def hide(self) -> None:
        """Out of os.environ, which writes through to what children get: there it stays."""
        seen = os.environb
        entries = seen.get(PATH, b"").split(b":")
        rest = [entry for entry in entries if entry != self.site]
        if rest != entries:
            if rest or self.added == EMPTY:
                seen[PATH] = b":".join(rest)
            else:
                del seen[PATH]
        if self.added is not None:
            for name in (FOLDER, ADDED):
                seen.pop(name, None)

    # --- the script's own environment --------------------------------------------------------------------

    def putting(self, putenv: Any) -> Any:
        def keep_putenv(name: Word, value: Word, /) -> Any:
            try:
                if os.fsencode(name) == PATH:
                    value = self._with_site(os.fsencode(value))
            except Exception as fault:
                guard.off("environment", fault)
            return putenv(name, value)

        return keep_putenv

    def unsetting(self, unsetenv: Any, putenv: Any) -> Any:
        def keep_unsetenv(name: Word, /) -> Any:
            kept = None
            try:
                kept = {PATH: self.site, ADDED: self.added, **self.ours}.get(os.fsencode(name))
            except Exception as fault:
                guard.off("environment", fault)
            return unsetenv(name) if kept is None else putenv(name, kept)

        return keep_unsetenv

    def _with_site(self, path: bytes) -> bytes:
        if self.site in path.split(b":"):
            return path
        return self.site + b":" + path if path else self.site

    # --- environments made for a child -------------------------------------------------------------------

    def starting(self, call: Any) -> Any:
        """Of os.execve and os.posix_spawn."""

        def start(path: Any, argv: Any, env: Any, **options: Any) -> Any:
            try:
                env = self._of_mapping(path, argv, env)
            except Exception as fault:
                guard.off("environment", fault)
            return call(path, argv, env, **options)

        start.__name__, start.__doc__ = call.__name__, call.__doc__
        return start

    def forking(self, call: Any) -> Any:
        """Of what subprocess starts everything with: programs second, a list of "NAME=value" or None sixth."""

        def fork_exec(*given: Any) -> Any:
            try:
                if type(given[5]) is list:
                    pairs = dict(entry.split(b"=", 1) for entry in given[5])
                    added = self._lacking(given[1], given[0], pairs)
                    if added:
                        env = [name + b"=" + value for name, value in {**pairs, **added}.items()]
                        given = (*given[:5], env, *given[6:])
            except Exception as fault:
                guard.off("environment", fault)
            return call(*given)

        return fork_exec

    def _of_mapping(self, path: Any, words: Any, env: Any) -> Any:
        """Only plain dicts are read, and os.environ itself: what is of the script's own making would run."""
        if env is os.environ or env is os.environb:
            pairs = dict(os.environb)
        elif type(env) is dict and all(type(part) in (str, bytes) for pair in env.items() for part in pair):
            pairs = {os.fsencode(name): os.fsencode(value) for name, value in env.items()}
        else:
            return env
        added = self._lacking((path,), words, pairs)
        return {**pairs, **added} if added else env

    def _lacking(self, programs: Words, words: Words, given: dict[bytes, bytes]) -> dict[bytes, bytes]:
        """What an environment needs for the Python in it to be recorded. One that was copied from ours is for any
        program, since a shell may start it; to one that was not, something is added for a Python only."""
        path, copied = given.get(PATH), FOLDER in given
        if not copied and not (type(words) in (list, tuple) and _is_python(programs) and _takes_us_in(words)):
            return {}
        with_site = self._with_site(path or b"")
        added = {PATH: with_site} if with_site != path else {}
        if not copied:
            added.update(self.ours)
            added[ADDED] = EMPTY if path == b"" else b"1"
        return added


def _is_python(programs: Words) -> bool:
    for program in programs[:ENTRIES]:
        if type(program) not in (str, bytes):
            return False
        path = os.fsdecode(program)
        if path == sys.executable or _named_python(path) or _named_python(os.path.realpath(path)):
            return True
    return False


def _named_python(path: str) -> bool:
    name = os.path.basename(path)
    return any(name.startswith(kind) and not name[len(kind) :].strip("0123456789.td") for kind in ("python", "pypy"))


def _takes_us_in(words: Words) -> bool:
    """Not where its flags keep us out: -E and -I pass PYTHONPATH over, -S has no sitecustomize."""
    rest = iter(words[1:])
    for each in rest:
        word = os.fsdecode(each) if type(each) in (str, bytes) else ""
        if not word.startswith("-") or word == "-":
            return True
        flags = "" if word.startswith("--") else word[1:]
        for place, letter in enumerate(flags, 1):
            if letter in "EIS":
                return False
            if letter in "cm":
                return True
            if letter in "XW":  # these take a value
                if place == len(flags):
                    next(rest, None)
                break
    return True
