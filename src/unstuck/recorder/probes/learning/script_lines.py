"""Places in the training's code: the user's frames, and lines worth naming that are found by how they read."""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType
from typing import Any

from ... import objects, user_code
from ...records import Site

CONSTANT = r"(constant_|zeros_|ones_|fill_|(?<!\.)zero_|torch\.(zeros|ones|full)(_like)?)\("
DRAWN = r"(normal_|uniform_|torch\.randn?(_like)?)\("


def site_at(code: CodeType, line: int) -> Site:
    return user_code.absolute(code.co_filename), line, user_code.name_of(code)


def user_frame(frame: FrameType | None) -> FrameType | None:
    return next(user_frames(frame), None)


def user_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """Innermost first."""
    return (caller for caller in user_code.frames(frame) if user_code.is_user_file(caller.f_code.co_filename))


def is_function(frame: FrameType) -> bool:
    """Its locals are its own, not those of a module or a class."""
    return frame.f_code.co_flags & objects.FAST == objects.FAST


def names_in(frame: FrameType | None) -> dict[str, Any]:
    """What the function of that frame calls by a name; where it is a module's own code, its globals."""
    if frame is None:
        return {}
    return objects.locals_of(frame) if is_function(frame) else dict(frame.f_globals)


class ScriptLines:
    """Remembers what it found: at the end of the process the script's name is gone."""

    def __init__(self) -> None:
        self._known: dict[object, Site] = {}
        self.files: list[str] = []
        """In which an optimizer is built: the training is there, or near."""

    def layer(self, makers: Iterable[tuple[type, str]]) -> Site | None:
        """Where a layer is made; `makers`: the classes on the path to it, each with the attribute that leads on."""
        sites = [site for kind, attribute in makers if (site := self.assigned(kind, attribute)) is not None]
        return sites[-1] if sites else None

    def assigned(self, kind: type, attribute: str) -> Site | None:
        """The line of the class, or of one of its bases, that gives `self.<attribute>` its value."""
        key = (kind, attribute)
        if key not in self._known:
            pattern = re.compile(rf"\bself\.{re.escape(attribute)}\s*(:[^=]+)?=[^=]")
            sites = (_in_class(base, pattern) for base in objects.mro_of(kind))
            site = next((site for site in sites if site is not None), None)
            if site is None:
                return None
            self._known[key] = site
        return self._known[key]

    def first_weights(self) -> Site | None:
        """A line that gives weights one value each: where matrices with rows alike most likely come from."""
        return self._first(_weights(CONSTANT)) or self._first(rf"^(?!.*bias).*{CONSTANT}")

    def drawn_weights(self) -> Site | None:
        """A line that draws weights at random."""
        return self._first(_weights(DRAWN))

    def eval_call(self) -> Site | None:
        return self._first(r"\.(eval\(\)|train\(False\))")

    def _first(self, pattern: str) -> Site | None:
        """The first line of the script, or of a file that builds an optimizer, that reads like this."""
        if pattern in self._known:
            return self._known[pattern]
        main = getattr(sys.modules.get("__main__"), "__dict__", {}).get("__file__")
        for file in dict.fromkeys([main, *self.files]):
            if type(file) is not str or not user_code.is_user_file(file):
                continue
            for number, line in enumerate(linecache.getlines(file), 1):
                if re.search(pattern, line.partition("#")[0]):
                    self._known[pattern] = user_code.absolute(file), number, ""
                    return self._known[pattern]
        return None


def _weights(given: str) -> str:
    """A line that gives weights, and no bias, their values in this way."""
    return rf"^(?!.*bias).*(weight.*{given}|{given}.*weight|Parameter\(.*{given})"


def _in_class(kind: type, pattern: re.Pattern[str]) -> Site | None:
    file, name = objects.file_of(kind), objects.class_name(kind)
    inside = False
    for number, line in enumerate(linecache.getlines(file) if file else (), 1):
        if re.match(rf"\s*class\s+{re.escape(name)}\b", line):
            inside = True
        elif inside and pattern.search(line):
            return user_code.absolute(file), number, f"{name}.__init__"
    return None
