"""`--redact`: a report without what could identify the project: paths, arguments, addresses and quoted values.

What was measured stays, and so do names in the code: the report must still say what is wrong.
"""

from __future__ import annotations

import os
import re
from typing import Any

from unstuck.model import Case

PATH, ADDRESS, VALUE, ARGUMENTS = "(path)", "(address)", "'…'", "…"
MIN_KNOWN = 4  # characters: a shorter path would match in the middle of words

_QUOTED = re.compile(r"'(?:[^'\\\n]|\\.)*'(?!\w)|\"(?:[^\"\\\n]|\\.)*\"|“[^”\n]*”")
_SETTING = re.compile(r"['\"][a-z_]{1,12}['\"]")
_URL = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s)>\]]+", re.IGNORECASE)
_HOST = re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b|\b[a-z][\w-]*(?:\.[\w-]+)+(?<!\.py):\d{2,5}\b", re.IGNORECASE)
# Absolute or of the home folder; or relative, with a file's extension or several folders: not "NaN/Inf".
_ABSOLUTE = re.compile(r"(?<![\w/.…])(?:…|~|\.{1,2})?/[^\s:,;()\[\]{}<>`'\"|]+")
_RELATIVE = re.compile(
    r"(?<![\w/])[\w.+@~-]+(?:/[\w.+@~-]+)*/[\w.+@~-]*\.\w{1,8}\b|(?<![\w/])[\w.+@~-]+(?:/[\w.+@~-]+){2,}"
)


def redacted(plain: Any, case: Case) -> Any:
    """Every text in it, without these; lists named `command` without their arguments."""
    known = sorted(_known(case), key=len, reverse=True)
    return _walk(plain, known)


def _walk(plain: Any, known: list[str], *, ours: bool = False) -> Any:
    if isinstance(plain, str):
        return text(plain, known, ours=ours)
    if isinstance(plain, dict):
        return {
            key: command(value)
            if key == "command" and isinstance(value, list)
            else _walk(value, known, ours=ours or key in ("fix", "diff"))
            for key, value in plain.items()
        }
    return [_walk(item, known, ours=ours) for item in plain] if isinstance(plain, list) else plain


def command(words: list[str]) -> list[str]:
    """The names of the interpreter and the script; how many arguments there were is said by nothing."""
    kept = []
    for word in words:
        kept.append(os.path.basename(word) if not word.startswith("-") else word)
        if word.endswith(".py"):
            break
    scripts = [word for word in kept if word.endswith(".py") or word.startswith("python")]
    shown = scripts or kept[:1]
    return [*shown, ARGUMENTS] if len(words) > len(shown) else shown


def text(words: str, known: list[str], *, ours: bool = False) -> str:
    """`ours`: it proposes code, in which a short word in quotes is a setting of torch's or ours."""
    for path in known:
        words = words.replace(path, _stripped(path))
    words = _QUOTED.sub(lambda quoted: quoted[0] if ours and _SETTING.fullmatch(quoted[0]) else VALUE, words)
    words = _URL.sub(ADDRESS, words)
    words = _ABSOLUTE.sub(lambda path: _stripped(path[0]), words)
    words = _RELATIVE.sub(lambda path: _stripped(path[0]), words)
    return _HOST.sub(ADDRESS, words)


def _stripped(path: str) -> str:
    """Of a source file its name: the finding is about it."""
    return os.path.basename(path) if path.endswith(".py") else PATH


def _known(case: Case) -> set[str]:
    """Paths that the run itself named, which may hold spaces and anything else."""
    paths = {case.cwd, os.path.expanduser("~"), *(fact.path for fact in case.paths)}
    paths |= {flight.attempt_target for flight in case.flights}
    paths |= {frame.file for look in case.looks for p in look.processes for t in p.threads for frame in t.frames}
    paths |= {flight.sample_key for flight in case.flights}
    paths |= {f"{case.cwd}/", *(word for word in case.command if "/" in word)}
    return {path for path in paths if len(path) >= MIN_KNOWN}
