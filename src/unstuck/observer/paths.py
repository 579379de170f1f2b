"""Tries a path that the target keeps trying: there or not, how old, whose pid is in it. Never creates, never blocks."""

from __future__ import annotations

import ast
import os
import re
import stat
import threading
import time
from collections.abc import Iterator

from unstuck.model import PathFact

from . import proc
from .descriptors import Descriptors

_SMALL = 4096
_TIME_LIMIT = 2.0
_NUMBER = re.compile(r"\b(\d{1,7})\b")
_NAMED_PID = re.compile(r"pid\W{0,4}(\d{1,7})\b", re.IGNORECASE)


def path_fact(path: str, descriptors: Descriptors) -> PathFact:
    """A network file system may not answer: then the try is left behind in its thread, and that is the fact."""
    found: list[PathFact] = []
    attempt = threading.Thread(target=lambda: found.append(_try(path)), name="path-fact", daemon=True)
    attempt.start()
    attempt.join(_TIME_LIMIT)
    if not found:
        return PathFact(path, exists=False, error=f"no answer within {_TIME_LIMIT:g} s")
    fact = found[0]
    real = os.path.realpath(path) if fact.exists else path
    users = tuple(dict.fromkeys((*descriptors.having(path), *descriptors.having(real))))
    return PathFact(path, fact.exists, fact.error, fact.age, fact.text_pid, fact.pid_alive, users)


def _try(path: str) -> PathFact:
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        return PathFact(path, exists=os.path.lexists(path), error=_text(error))
    age = max(0.0, time.time() - status.st_mtime)
    if not stat.S_ISREG(status.st_mode):  # opening a FIFO or a device has effects
        return PathFact(path, exists=True, age=age)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            content = os.read(fd, _SMALL) if status.st_size <= _SMALL else b""
        finally:
            os.close(fd)
    except OSError as error:
        return PathFact(path, exists=True, error=_text(error), age=age)
    pid = pid_in(content.decode(errors="replace"))
    return PathFact(path, exists=True, age=age, text_pid=pid, pid_alive=None if pid is None else proc.alive(pid))


def pid_in(text: str) -> int | None:
    """The pid a lock file names: "pid: 12", or the only number in it."""
    named = _NAMED_PID.findall(text)
    numbers = named or _NUMBER.findall(text)
    return int(numbers[0]) if len(set(numbers)) == 1 and int(numbers[0]) > 0 else None


def _text(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


_TESTS = {"os.path.exists", "os.path.lexists", "os.path.isfile", "os.path.isdir", "os.stat", "os.access"}
_METHODS = {"exists", "is_file", "is_dir"}
_MAKES = {"os.mkdir", "os.link", "os.symlink"}


def polled_path(loop: ast.AST) -> str:
    """The expression of the path whose end the loop waits for; empty where it waits for none.

    `while exists(x): sleep` waits for x to go; so does a loop that sleeps and tries to create x exclusively.
    `while not exists(x)` waits for x to come: that is no lock file.
    """
    if not isinstance(loop, ast.While):
        return ""
    for call in _asserted(loop.test):
        path = _path_tested(call)
        if path is not None:
            return ast.unparse(path)
    sleeps = any(_sleeps(node) for node in ast.walk(loop))
    for node in ast.walk(loop):
        path = _path_made(node) if isinstance(node, ast.Call) else _path_left_when_gone(node) if sleeps else None
        if path is not None:
            return ast.unparse(path)
    return ""


def _asserted(test: ast.expr) -> list[ast.Call]:
    """Calls that must be true for the loop to go on."""
    if isinstance(test, ast.BoolOp):
        return [call for value in test.values for call in _asserted(value)]
    return [test] if isinstance(test, ast.Call) else []


def _sleeps(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "sleep"


def _path_left_when_gone(node: ast.AST) -> ast.expr | None:
    """`if not exists(x): break` (or return) inside the loop."""
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.UnaryOp) or not isinstance(node.test.op, ast.Not):
        return None
    if not isinstance(node.test.operand, ast.Call) or not isinstance(node.body[-1], ast.Break | ast.Return):
        return None
    return _path_tested(node.test.operand)


def _path_tested(call: ast.Call) -> ast.expr | None:
    """x of exists(x), x.exists() and their like."""
    name = _name(call)
    if name in _TESTS and call.args:
        return call.args[0]
    if isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS and not call.args and name not in _TESTS:
        return call.func.value
    return None


def _path_made(call: ast.Call) -> ast.expr | None:
    """x of a call that fails while x exists."""
    name, first = _name(call), call.args[0] if call.args else None
    if name in _MAKES:
        return call.args[-1] if name != "os.mkdir" and len(call.args) > 1 else first
    if name == "open" and first is not None and _opens_exclusively(call.args[1:2], call):
        return first
    if name == "os.open" and first is not None and any("O_EXCL" in ast.unparse(flags) for flags in call.args[1:]):
        return first
    if isinstance(call.func, ast.Attribute) and call.func.attr == "open" and _opens_exclusively(call.args[:1], call):
        return call.func.value if name != "os.open" else None
    return None


def _name(call: ast.Call) -> str:
    return ast.unparse(call.func) if isinstance(call.func, ast.Name | ast.Attribute) else ""


def _opens_exclusively(positional: list[ast.expr], call: ast.Call) -> bool:
    modes = positional + [keyword.value for keyword in call.keywords if keyword.arg == "mode"]
    return any(isinstance(mode, ast.Constant) and isinstance(mode.value, str) and "x" in mode.value for mode in modes)


def stated_path(tree: ast.Module, expression: str) -> str | None:
    """The path as far as the source alone says it: a literal, a module constant, Path(...), a join of these."""
    try:
        wanted = ast.parse(expression, mode="eval").body
    except SyntaxError:
        return None
    constants: dict[str, ast.expr] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            constants[name] = node.value if name not in constants else ast.Constant(None)  # set twice: not constant
    return _value(wanted, constants, depth=8)


def _value(node: ast.expr, constants: dict[str, ast.expr], depth: int) -> str | None:
    if depth == 0:
        return None
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.Name):
        return _value(constants[node.id], constants, depth - 1) if node.id in constants else None
    parts: list[ast.expr] = []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        parts = [node.left, node.right]
    elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("Path", "pathlib.Path", "os.path.join", "str"):
        parts = node.args
    values = [_value(part, constants, depth - 1) for part in parts]
    known = [value for value in values if value is not None]
    return os.path.join(*known) if known and len(known) == len(values) else None


UNNAMED = "?"
_OPENERS = frozenset(
    ("open", "io.open", "os.open", "os.stat", "os.listdir", "Image.open", "PIL.Image.open", "np.load", "numpy.load",
     "np.memmap", "torch.load", "h5py.File", "pd.read_csv", "pd.read_parquet", "torchvision.io.read_image",
     "torchaudio.load", "sf.read", "cv2.imread", "imageio.imread", "tarfile.open", "zipfile.ZipFile", "gzip.open",
     "Path", "pathlib.Path", "pickle.load", "json.load")
)  # fmt: skip
_LEAVES = (ast.Raise, ast.Return, ast.Break)
_Scope = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def tried(loop: ast.While | ast.For | ast.AsyncFor) -> str:
    """The path given to a call that may fail without ending the loop; "?" where no such call names it; else empty.

    A `for` over a data set that skips its bad items goes on to the next one: only `while` and counted retries
    try the same thing again.
    """
    if not isinstance(loop, ast.While) and not _counts(loop):
        return ""
    for node in _inside(loop):
        if isinstance(node, ast.Try) and any(_swallows(handler) for handler in node.handlers):
            calls = [call for statement in node.body for call in ast.walk(statement) if isinstance(call, ast.Call)]
            named = (call.args[0] for call in calls if _opens(call) and isinstance(call.args[0], ast.Name))
            first = next(named, None)
            return ast.unparse(first) if first is not None else UNNAMED
    return ""


def _opens(call: ast.Call) -> bool:
    """A call whose first argument is a path; of other calls the arguments are nobody's business."""
    name = ast.unparse(call.func) if isinstance(call.func, ast.Name | ast.Attribute) else ""
    return bool(call.args) and name in _OPENERS


def _counts(loop: ast.For | ast.AsyncFor) -> bool:
    """`for attempt in range(n)`, `in itertools.count()`: the same thing, another time."""
    if not isinstance(loop.iter, ast.Call):
        return False
    return ast.unparse(loop.iter.func).rpartition(".")[2] in ("range", "count", "repeat", "cycle")


def _swallows(handler: ast.ExceptHandler) -> bool:
    """Nothing in it leaves the loop."""
    return not any(isinstance(node, _LEAVES) for statement in handler.body for node in ast.walk(statement))


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes of the loop itself, not of functions defined in it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _Scope):
            yield child
            yield from _inside(child)
