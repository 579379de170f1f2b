"""Lines of the script worth naming: where a layer is made, where weights are given, where something is written."""

from __future__ import annotations

import linecache
import re
import sys

from ... import objects, user_code
from ...records import Site
from . import layers
from .naming import Names

CONSTANT = r"(constant_|zeros_|ones_|fill_|(?<!\.)zero_|torch\.(zeros|ones|full)(_like)?)\("
DRAWN = r"(normal_|uniform_|torch\.randn?(_like)?)\("


class ScriptLines:
    """Remembers what it found: at the end of the process the script's name is gone."""

    def __init__(self) -> None:
        self._places: dict[object, Site] = {}
        self.files: list[str] = []
        """In which an optimizer is built: the training is there, or near."""

    def layer(self, path: str, names: Names) -> Site | None:
        """Where the class that has a layer makes it: the nearest class of the user's on its path."""
        for root, module in names.roots:
            if not path.startswith(f"{root}."):
                continue
            found: Site | None = None
            for part in path[len(root) + 1 :].split("."):
                found = self.assigned(type(module), part) or found
                module = layers.parts(module).get(part)
                if module is None:
                    break
            if found is not None:
                return found
        return None

    def assigned(self, kind: type, attribute: str) -> Site | None:
        """The line of the class, or of one of its bases, that gives `self.<attribute>` its value."""
        key = (kind, attribute)
        if key not in self._places:
            pattern = re.compile(rf"\bself\.{re.escape(attribute)}\s*(:[^=]+)?=[^=]")
            found = next(
                (site for each in objects.mro_of(kind) if (site := _in_class(each, pattern)) is not None), None
            )
            if found is None:
                return None
            self._places[key] = found
        return self._places[key]

    def first_weights(self) -> Site | None:
        """A line that gives weights one value each: where matrices with rows alike most likely come from."""
        likely = rf"^(?!.*bias).*(weight.*{CONSTANT}|{CONSTANT}.*weight|Parameter\(.*{CONSTANT})"
        return self.written(likely) or self.written(rf"^(?!.*bias).*{CONSTANT}")

    def drawn_weights(self) -> Site | None:
        """A line that draws weights at random."""
        return self.written(rf"^(?!.*bias).*(weight.*{DRAWN}|{DRAWN}.*weight|Parameter\(.*{DRAWN})")

    def eval_call(self) -> Site | None:
        return self.written(r"\.(eval\(\)|train\(False\))")

    def written(self, pattern: str) -> Site | None:
        """The first line of the script, or of a file that builds an optimizer, that reads like this."""
        if pattern in self._places:
            return self._places[pattern]
        main = getattr(sys.modules.get("__main__"), "__dict__", {}).get("__file__")
        for file in dict.fromkeys([main, *self.files]):
            if type(file) is not str or not user_code.is_user_file(file):
                continue
            for number, line in enumerate(linecache.getlines(file), 1):
                if re.search(pattern, line.partition("#")[0]):
                    self._places[pattern] = user_code.absolute(file), number, ""
                    return self._places[pattern]
        return None


def _in_class(kind: type, pattern: re.Pattern[str]) -> Site | None:
    file, name = objects.file_of(kind), objects.class_name(kind)
    inside = False
    for number, line in enumerate(linecache.getlines(file) if file else (), 1):
        if re.match(rf"\s*class\s+{re.escape(name)}\b", line):
            inside = True
        elif inside and pattern.search(line):
            return user_code.absolute(file), number, f"{name}.__init__"
    return None
