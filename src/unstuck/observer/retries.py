"""Finds what a loop keeps trying in vain: its `try` swallows the error, and the loop goes round again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

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
