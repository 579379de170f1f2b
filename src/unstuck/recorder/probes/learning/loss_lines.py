"""Where the loss is computed, found in the source of the training."""

from __future__ import annotations

import linecache
import re
from types import FrameType

from ... import user_code
from ...records import Site
from ..numerics import source_lines
from . import sites

BACK = 80
"""Lines to look back for the assignment."""
CALLS = {
    "cross_entropy": ("cross_entropy", "CrossEntropyLoss"),
    "nll": ("nll_loss", "NLLLoss"),
    "mse": ("mse_loss", "MSELoss"),
    "smooth_l1": ("smooth_l1_loss", "SmoothL1Loss"),
    "huber": ("huber_loss", "HuberLoss"),
    "bce": ("binary_cross_entropy", "BCELoss"),
    "bce_logits": ("binary_cross_entropy_with_logits", "BCEWithLogitsLoss"),
    "kl_div": ("kl_div", "KLDivLoss"),
    "ctc": ("ctc_loss", "CTCLoss"),
}
"""By operation: the function, and the module."""
EVALUATES = re.compile(r"val|test|eval|predict|infer", re.IGNORECASE)
_CALLED_ON = (
    re.compile(r"scale\(\s*(\w+)"),
    re.compile(r"\b(\w+)\s*(?:/\s*[\w.]+\s*\)\s*)?\.backward\("),
    re.compile(r"backward\(\s*(\w+)"),
)


def site(frame: FrameType | None, op: str = "") -> Site | None:
    """Where the name that backward is called on was last assigned, in the same function; else the call itself.

    Where a framework calls backward, the one line of the script that calls this loss function."""
    here = sites.user_frame(frame)
    if here is None:
        return None
    assigned = _assigned(here.f_code.co_filename, here.f_lineno, here.f_code.co_firstlineno)
    if assigned is None and frame is not here and op in CALLS:
        called = _called(op, here)
        if called is not None:
            return called
    return sites.at(here.f_code, assigned or here.f_lineno)


def _called(op: str, frame: FrameType) -> Site | None:
    """The only call of a loss function in the files of the script, by its name or by that of the module made of it."""
    function, module = CALLS[op]
    texts = {file: linecache.getlines(file) for file in source_lines.files(frame)}
    found = _lines(texts, re.compile(rf"\b{function}\("))
    if not found:
        making = re.compile(rf"(\w+)\s*=.*\b{module}\(")
        made = [match[1] for lines in texts.values() for text in lines if (match := making.search(text))]
        found = _lines(texts, re.compile(rf"\b{re.escape(made[0])}\(")) if len(made) == 1 else []
    return (user_code.absolute(found[0][0]), found[0][1], "") if len(found) == 1 else None


def _lines(texts: dict[str, list[str]], wanted: re.Pattern[str]) -> list[tuple[str, int]]:
    """Where that stands; where it stands several times, those that are not in a function that only evaluates."""
    found = [(file, n) for file, lines in texts.items() for n, text in enumerate(lines, 1) if wanted.search(text)]
    if len(found) < 2:
        return found
    return [(file, number) for file, number in found if not EVALUATES.search(_function(texts[file], number))]


def _function(lines: list[str], number: int) -> str:
    """Name of the function around a line."""
    indent = len(lines[number - 1]) - len(lines[number - 1].lstrip())
    for text in reversed(lines[: number - 1]):
        match = re.match(r"(\s*)(?:async )?def (\w+)", text)
        if match is not None and len(match[1]) < indent:
            return match[2]
    return ""


def _assigned(file: str, line: int, first: int) -> int | None:
    lines = linecache.getlines(file)
    if not 0 < line <= len(lines):
        return None
    name = next((match[1] for pattern in _CALLED_ON if (match := pattern.search(lines[line - 1]))), None)
    if name is None:
        return None
    assigned = re.compile(rf"^\s*(?:[\w, ]+,\s*)?{re.escape(name)}(?:\s*,[\w, ]+)?\s*=[^=]")
    divided = re.compile(rf"^\s*{re.escape(name)}\s*=\s*{re.escape(name)}\s*[/*]")
    for number in range(line - 1, max(first, line - BACK) - 1, -1):
        text = lines[number - 1]
        if assigned.match(text) and not divided.match(text):
            return number
    return None
