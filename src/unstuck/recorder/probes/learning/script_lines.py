"""Lines of the script worth naming: where a layer is made, where weights are given, where something is written."""

from __future__ import annotations

import sys

from ... import objects, user_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_places: dict[object, list[str | int]] = {}
"""Lines found; at the end of the process the script's name is gone."""
files_of_optimizers: list[str] = []
"""Files in which an optimizer is built: the training is there, or near."""


def layer_site(path: str, names: Any) -> list[str | int] | None:
    """Where the class that has a layer makes it: the nearest class of the user's on its path."""
    for root, module in names.roots:
        if not path.startswith(f"{root}."):
            continue
        found: list[str | int] | None = None
        for part in path[len(root) + 1 :].split("."):
            found = assigned(type(module), part) or found
            module = ((objects.instance_dict(module) or {}).get("_modules") or {}).get(part)
            if module is None:
                break
        if found is not None:
            return found
    return None


def assigned(kind: type, attribute: str) -> list[str | int] | None:
    """The line of the class, or of one of its bases, that gives `self.<attribute>` its value."""
    key = (kind, attribute)
    if _places.get(key) is not None:
        return _places[key]
    import linecache
    import re

    pattern = re.compile(rf"\bself\.{re.escape(attribute)}\s*(:[^=]+)?=[^=]")
    for each in kind.__mro__:
        file = objects.file_of(each)
        if not file:
            continue
        inside = False
        for number, line in enumerate(linecache.getlines(file), 1):
            if re.match(rf"\s*class\s+{each.__name__}\b", line):
                inside = True
            elif inside and pattern.search(line):
                _places[key] = [user_code.absolute(file), number, f"{each.__name__}.__init__"]
                return _places[key]
    return None


def given_first_weights() -> list[str | int] | None:
    """A line of the user's that gives weights one value each: where matrices with rows alike most likely come from."""
    constant = r"(constant_|zeros_|ones_|fill_|(?<!\.)zero_|torch\.(zeros|ones|full)(_like)?)\("
    return written_at(rf"^(?!.*bias).*(weight.*{constant}|{constant}.*weight|Parameter\(.*{constant})") or written_at(
        rf"^(?!.*bias).*{constant}"
    )


def given_width() -> list[str | int] | None:
    """A line of the user's that draws weights at random."""
    drawn = r"(normal_|uniform_|torch\.randn?(_like)?)\("
    return written_at(rf"^(?!.*bias).*(weight.*{drawn}|{drawn}.*weight|Parameter\(.*{drawn})")


def written_at(pattern: str) -> list[str | int] | None:
    """The first line of the script, or of a file that builds an optimizer, that reads like this."""
    if _places.get(pattern) is not None:
        return _places[pattern]
    import linecache
    import re

    files = [getattr(sys.modules.get("__main__"), "__file__", None), *files_of_optimizers]
    for file in dict.fromkeys(files):
        if not isinstance(file, str) or not user_code.is_user_file(file):
            continue
        for number, line in enumerate(linecache.getlines(file), 1):
            if re.search(pattern, line.partition("#")[0]):
                _places[pattern] = [user_code.absolute(file), number, ""]
                return _places[pattern]
    return None
