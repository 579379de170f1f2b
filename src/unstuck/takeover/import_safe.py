"""Can this script be imported without running? Workers that begin with a fresh interpreter import it."""

from __future__ import annotations

import ast
import multiprocessing
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def start_method(given: str | None) -> str:
    """Of workers with this context; the first that the platform knows is its default."""
    return given or multiprocessing.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]


def runs_again(method: str) -> bool:
    """Workers started this way would run the training too."""
    main = sys.modules.get("__main__")
    return method != "fork" and getattr(main, "__file__", None) is not None and not is_guarded()


def is_guarded() -> bool:
    """What runs now was begun under `if __name__ == "__main__":` of a script that is a file."""
    main = sys.modules.get("__main__")
    spans = _guards(getattr(main, "__file__", None))
    line = _running_line(vars(main)) if main is not None else None
    return any(line is None or first <= line <= last for first, last in spans)


def _guards(path: str | None) -> list[tuple[int, int]]:
    """First and last line of each."""
    try:
        with open(path or "", "rb") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return []
    guards = [node for node in tree.body if isinstance(node, ast.If) and _is_guard(node)]
    return [(node.lineno, node.body[-1].end_lineno or 0) for node in guards]


def _is_guard(node: ast.If) -> bool:
    for test in ast.walk(node.test):
        if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq):
            sides = {ast.dump(side) for side in (test.left, test.comparators[0])}
            if sides == {ast.dump(ast.Name("__name__", ast.Load())), ast.dump(ast.Constant("__main__"))}:
                return True
    return False


def _running_line(script: dict[str, Any]) -> int | None:
    """The line of the script itself that is running; None at its end, and in another thread."""
    frame: Any = sys._getframe()
    while frame is not None:
        if frame.f_globals is script and frame.f_code.co_name == "<module>":
            return int(frame.f_lineno)
        frame = frame.f_back
    return None
