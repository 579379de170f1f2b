"""Paths that a loop waits to be rid of or keeps trying: found in its source, and tried as the loop would."""

from __future__ import annotations

import ast
import os
import re
import stat
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

from unstuck.model import PathFact

from . import proc
from .descriptors import Descriptors

UNNAMED = "?"
_SMALL_BYTES = 4096  # lock files are no larger
_TIME_LIMIT = 2.0  # seconds for one try
_NUMBER = re.compile(r"\b(\d{1,7})\b")
_NAMED_PID = re.compile(r"pid\W{0,4}(\d{1,7})\b", re.IGNORECASE)
_TESTS = {"os.path.exists", "os.path.lexists", "os.path.isfile", "os.path.isdir", "os.stat", "os.access"}
_TEST_METHODS = {"exists", "is_file", "is_dir"}
_MAKES = {"os.mkdir", "os.link", "os.symlink"}
_OPENERS = frozenset(
    ("open", "io.open", "os.open", "os.stat", "os.listdir", "Image.open", "PIL.Image.open", "np.load", "numpy.load",
     "np.memmap", "torch.load", "h5py.File", "pd.read_csv", "pd.read_parquet", "torchvision.io.read_image",
     "torchaudio.load", "sf.read", "cv2.imread", "imageio.imread", "tarfile.open", "zipfile.ZipFile", "gzip.open",
     "Path", "pathlib.Path", "pickle.load", "json.load")
)  # fmt: skip
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def path_fact(path: str, descriptors: Descriptors) -> PathFact:
    """There or not, how old, whose pid is in it. Never creates, never blocks: a network file system may not answer,
    then the try is left behind in its thread, and that is the fact."""
    facts: list[PathFact] = []
    attempt = threading.Thread(target=lambda: facts.append(_try(path)), name="path-fact", daemon=True)
    attempt.start()
    attempt.join(_TIME_LIMIT)
    if not facts:
        return PathFact(path, exists=False, error=f"no answer within {_TIME_LIMIT:g} s")
    real = os.path.realpath(path) if facts[0].exists else path
    return replace(facts[0], users=tuple(dict.fromkeys((*descriptors.having(path), *descriptors.having(real)))))


def _try(path: str) -> PathFact:
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        return PathFact(path, exists=os.path.lexists(path), error=getattr(error, "strerror", "") or str(error))
    fact = PathFact(path, exists=True, age=max(0.0, time.time() - status.st_mtime))
    if not stat.S_ISREG(status.st_mode):  # opening a FIFO or a device has effects
        return fact
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            content = os.read(fd, _SMALL_BYTES) if status.st_size <= _SMALL_BYTES else b""
        finally:
            os.close(fd)
    except OSError as error:
        return replace(fact, error=error.strerror or str(error))
    pid = pid_in(content.decode(errors="replace"))
    return fact if pid is None else replace(fact, text_pid=pid, pid_alive=proc.alive(pid))


def pid_in(text: str) -> int | None:
    """The pid a lock file names: "pid: 12", or the only number in it."""
    numbers = _NAMED_PID.findall(text) or _NUMBER.findall(text)
    return int(numbers[0]) if len(set(numbers)) == 1 and int(numbers[0]) > 0 else None


def polled_path(loop: ast.AST) -> str:
    """The expression of the path whose end the loop waits for; empty where it waits for none.

    `while exists(x): sleep` waits for x to go; so does a loop that sleeps and tries to create x exclusively.
    `while not exists(x)` waits for x to come: that is no lock file.
    """
    if not isinstance(loop, ast.While):
        return ""
    nodes = list(ast.walk(loop))
    sleeps = any(isinstance(node, ast.Call) and _name(node).rpartition(".")[2] == "sleep" for node in nodes)
    paths = [_path_tested(call) for call in _asserted(loop.test)]
    paths += [_path_made(node) if isinstance(node, ast.Call) else _path_gone(node, sleeps) for node in nodes]
    return next((ast.unparse(path) for path in paths if path is not None), "")


def _asserted(test: ast.expr) -> list[ast.Call]:
    """Calls that must be true for the loop to go on."""
    if isinstance(test, ast.BoolOp):
        return [call for value in test.values for call in _asserted(value)]
    return [test] if isinstance(test, ast.Call) else []


def _path_gone(node: ast.AST, sleeps: bool) -> ast.expr | None:
    """`if not exists(x): break` (or return) inside a loop that sleeps."""
    match node:
        case ast.If(test=ast.UnaryOp(op=ast.Not(), operand=ast.Call() as call), body=[*_, ast.Break() | ast.Return()]):
            return _path_tested(call) if sleeps else None
    return None


def _path_tested(call: ast.Call) -> ast.expr | None:
    """x of exists(x), x.exists() and their like."""
    if _name(call) in _TESTS:
        return call.args[0] if call.args else None
    if isinstance(call.func, ast.Attribute) and call.func.attr in _TEST_METHODS and not call.args:
        return call.func.value
    return None


def _path_made(call: ast.Call) -> ast.expr | None:
    """x of a call that fails while x exists."""
    name, first = _name(call), call.args[0] if call.args else None
    if name in _MAKES:
        return call.args[-1] if name != "os.mkdir" and len(call.args) > 1 else first
    if name == "os.open":
        return first if any("O_EXCL" in ast.unparse(flags) for flags in call.args[1:]) else None
    if name == "open":
        return first if _opens_exclusively(call.args[1:2], call) else None
    if isinstance(call.func, ast.Attribute) and call.func.attr == "open" and _opens_exclusively(call.args[:1], call):
        return call.func.value
    return None


def _name(call: ast.Call) -> str:
    return ast.unparse(call.func) if isinstance(call.func, ast.Name | ast.Attribute) else ""


def _opens_exclusively(positional: list[ast.expr], call: ast.Call) -> bool:
    modes = positional + [keyword.value for keyword in call.keywords if keyword.arg == "mode"]
    return any(isinstance(mode, ast.Constant) and isinstance(mode.value, str) and "x" in mode.value for mode in modes)


def tried(loop: ast.While | ast.For | ast.AsyncFor) -> str:
    """The path that the loop keeps trying in vain: its `try` swallows the error, and the loop goes round again. "?"
    where no call names it; empty if there is no such `try`.

    A `for` over a dataset that skips its bad items goes on to the next one: only `while` and counted retries
    try the same thing again.
    """
    if not isinstance(loop, ast.While) and not _counts(loop):
        return ""
    for node in _inside(loop):
        if isinstance(node, ast.Try) and any(_swallows(handler) for handler in node.handlers):
            calls = [call for statement in node.body for call in ast.walk(statement) if isinstance(call, ast.Call)]
            # Of calls that open nothing the arguments are nobody's business.
            paths = [call.args[0] for call in calls if call.args and _name(call) in _OPENERS]
            return next((path.id for path in paths if isinstance(path, ast.Name)), UNNAMED)
    return ""


def _counts(loop: ast.For | ast.AsyncFor) -> bool:
    """`for attempt in range(n)`, `in itertools.count()`: the same thing, another time."""
    if not isinstance(loop.iter, ast.Call):
        return False
    return ast.unparse(loop.iter.func).rpartition(".")[2] in ("range", "count", "repeat", "cycle")


def _swallows(handler: ast.ExceptHandler) -> bool:
    """Nothing in it leaves the loop."""
    nodes = (node for statement in handler.body for node in ast.walk(statement))
    return not any(isinstance(node, ast.Raise | ast.Return | ast.Break) for node in nodes)


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes of the loop itself, not of functions defined in it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, SCOPES):
            yield child
            yield from _inside(child)


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
    parts: list[ast.expr] = []
    match node:
        case _ if depth == 0:
            return None
        case ast.Constant():
            return node.value if isinstance(node.value, str) else None
        case ast.Name():
            return _value(constants[node.id], constants, depth - 1) if node.id in constants else None
        case ast.BinOp(op=ast.Div()):
            parts = [node.left, node.right]
        case ast.Call() if _name(node) in ("Path", "pathlib.Path", "os.path.join", "str"):
            parts = node.args
    values = [_value(part, constants, depth - 1) for part in parts]
    known = [value for value in values if value is not None]
    return os.path.join(*known) if known and len(known) == len(values) else None
