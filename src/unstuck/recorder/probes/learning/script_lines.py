"""Places in the training's code: the user's frames, and lines of its source, found by how they read.

Where something stands (an operation, the loss, the value of a name) the source is parsed; lines that are only likely
are searched for as text.
"""

from __future__ import annotations

import ast
import linecache
import re
import sys
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType
from typing import Any

from ... import objects, user_code
from ...records import Site
from ..loops.parsed_source import covers, last_name

MAX_FILES = 24
MAX_BYTES = 2_000_000  # of a file
LINES_BACK = 80  # in which the loss is assigned
SAME_NAME = (
    "log", "log2", "log10", "exp", "sqrt", "rsqrt", "std", "var", "softmax", "mean", "sign", "sgn", "round", "floor",
    "ceil", "trunc", "normal", "bernoulli", "poisson",
)  # fmt: skip
OPERATIONS: dict[str, tuple[tuple[str, ...], Any]] = {  # operation: calls that make it, and the operator
    **{name: ((name,), None) for name in SAME_NAME},
    "log1_p": (("log1p",), None),
    "pow": (("pow",), ast.Pow),
    "div": (("div", "divide", "true_divide"), ast.Div),
    "reciprocal": (("reciprocal",), ast.Div),
    "acos": (("acos", "arccos"), None),
    "asin": (("asin", "arcsin"), None),
    "atanh": (("atanh", "arctanh"), None),
    "log_softmax": (("log_softmax", "cross_entropy"), None),
    "nll_loss": (("cross_entropy", "nll_loss", "CrossEntropyLoss", "NLLLoss"), None),
}
LOSSES = {  # operation: the function, and the module
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
OTHERS = ("math", "np", "numpy", "logging")
EVALUATES = re.compile(r"val|test|eval|predict|infer", re.IGNORECASE)
CALLED_ON = (
    re.compile(r"scale\(\s*(\w+)"),
    re.compile(r"\b(\w+)\s*(?:/\s*[\w.]+\s*\)\s*)?\.backward\("),
    re.compile(r"backward\(\s*(\w+)"),
)
GIVEN_TO = (CALLED_ON[2], CALLED_ON[0])  # `accelerator.backward(loss)`: it is a library's
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
        self.files: list[str] = []  # in which an optimizer is built: the training is there, or near

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


# --- in the parsed source -----------------------------------------------------------------------------------------


def only_line(operation: str, frame: FrameType | None) -> Site | None:
    """The one line of the user's source that has such an operation; None where there are several, or none."""
    calls, operator = OPERATIONS.get(operation, ((), None))
    sites = [site for file in user_files(frame) for site in _uses(file, calls, operator)] if calls else []
    return sites[0] if len({site[:2] for site in sites}) == 1 else None


def loss_line(frame: FrameType | None, op: str = "") -> Site | None:
    """Where the name that backward is called on was last assigned, in the same function; else the call itself.

    Where a framework calls backward, the one line of the script that calls this loss function."""
    here = user_frame(frame)
    if here is None:
        return None
    called_on = CALLED_ON if frame is here else GIVEN_TO
    assigned = _loss_assigned(here.f_code.co_filename, here.f_lineno, here.f_code.co_firstlineno, called_on)
    if assigned is None and frame is not here and op in LOSSES:
        call = _loss_call(op, here)
        if call is not None:
            return call
    return site_at(here.f_code, assigned or here.f_lineno)


def _loss_assigned(file: str, line: int, first: int, called_on: tuple[re.Pattern[str], ...]) -> int | None:
    lines = linecache.getlines(file)
    if not 0 < line <= len(lines):
        return None
    name = next((match[1] for pattern in called_on if (match := pattern.search(lines[line - 1]))), None)
    if name is None:
        return None
    assigned = re.compile(rf"^\s*(?:[\w, ]+,\s*)?{re.escape(name)}(?:\s*,[\w, ]+)?\s*=[^=]")
    divided = re.compile(rf"^\s*{re.escape(name)}\s*=\s*{re.escape(name)}\s*[/*]")
    for number in range(line - 1, max(first, line - LINES_BACK) - 1, -1):
        text = lines[number - 1]
        if assigned.match(text) and not divided.match(text):
            return number
    return None


def _loss_call(op: str, frame: FrameType) -> Site | None:
    """The only call of a loss function in the files of the script, by its name or by that of the module made of it;
    where there are several, the only one that is not in a function that evaluates."""
    function, module = LOSSES[op]
    files = user_files(frame)
    sites = {site for file in files for site in _uses(file, (function,))}
    if not sites:
        made = [name for file in files for name in _made(file, module)]
        sites = {site for file in files for site in _uses(file, (made[0],))} if len(made) == 1 else set()
    if len(sites) > 1:
        sites = {site for site in sites if not EVALUATES.search(site[2].rpartition(".")[2])}
    return sites.pop() if len(sites) == 1 else None


def assignments(name: str, file: str, function: str) -> tuple[list[ast.Assign | ast.AnnAssign], bool]:
    """Where a name of that function gets values by assignment, and whether it gets them in no other way."""
    found: list[ast.Assign | ast.AnnAssign] = []
    stores = 0
    wanted = function.replace("<locals>.", "")  # before Python 3.11 code knows its last name only
    for node, inside in _nodes(file):
        if wanted != (inside if "." in wanted else inside.rpartition(".")[2]):
            continue
        stores += isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(part, ast.Name) and part.id == name for target in targets for part in ast.walk(target)):
                found.append(node)
    return found, len(found) == stores


def function_at(file: str, line: int) -> str:
    """The function that a line stands in."""
    inside = [name for node, name in _nodes(file) if isinstance(node, ast.stmt) and node.lineno == line]
    return inside[-1] if inside else "<module>"


def given_on(file: str, line: int) -> list[str]:
    """Names that calls on that line are given, those of the outermost call first."""
    calls = [node for node, _ in _nodes(file) if isinstance(node, ast.Call) and node.lineno == line]
    return [given.id for call in calls for given in call.args if isinstance(given, ast.Name)]


def return_at(file: str, line: int) -> ast.expr | None:
    """What the `return` statement on that line returns."""
    for node, _ in _nodes(file):
        if isinstance(node, ast.Return) and covers(node, line):
            return node.value
    return None


def called(call: ast.Call) -> str:
    """`torch.log(x)`, `x.log()`, `log(x)`; not those of other libraries."""
    base = getattr(call.func, "value", None)
    return "" if isinstance(base, ast.Name) and base.id in OTHERS else last_name(call.func)


def user_files(frame: FrameType | None) -> list[str]:
    """Files of the user's: those on the stack, then those of imported modules."""
    found = {caller.f_code.co_filename: None for caller in user_code.frames(frame)}
    for module in list(sys.modules.values()):
        file = getattr(module, "__dict__", {}).get("__file__")
        if type(file) is str and file.endswith(".py"):
            found[file] = None
    return [file for file in found if user_code.is_user_file(file)][:MAX_FILES]


def parsed(file: str) -> ast.Module | None:
    try:
        with open(file, "rb") as source:
            return ast.parse(source.read(MAX_BYTES))
    except (OSError, SyntaxError, ValueError):
        return None


def _nodes(file: str) -> Iterator[tuple[ast.AST, str]]:
    """All nodes of a file in their order, each with the function or class it is in."""
    tree = parsed(file)
    if tree is None:
        return
    waiting: list[tuple[ast.AST, str]] = [(tree, "<module>")]
    while waiting:
        node, function = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            function = node.name if function == "<module>" else f"{function}.{node.name}"
        yield node, function
        waiting.extend((part, function) for part in reversed(list(ast.iter_child_nodes(node))))


def _uses(file: str, calls: tuple[str, ...], operator: Any = ()) -> Iterator[Site]:
    for node, function in _nodes(file):
        by_name = isinstance(node, ast.Call) and called(node) in calls
        if by_name or (isinstance(node, ast.BinOp) and isinstance(node.op, operator or ())):
            assert isinstance(node, ast.expr)
            yield user_code.absolute(file), node.lineno, function


def _made(file: str, module: str) -> Iterator[str]:
    """Names that are given a module of this class: `loss = CrossEntropyLoss()`, `Trainer(loss=CrossEntropyLoss())`."""
    for node, _ in _nodes(file):
        if not isinstance(node, ast.Assign | ast.AnnAssign | ast.keyword) or node.value is None:
            continue
        if any(isinstance(part, ast.Call) and called(part) == module for part in ast.walk(node.value)):
            if isinstance(node, ast.keyword):
                yield node.arg or ""
            else:
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                yield last_name(target)
