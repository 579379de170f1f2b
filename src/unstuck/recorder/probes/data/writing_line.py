"""The line that writes to a piece of memory: for one step the lines of the user's own code are followed.

Only where it is proven already that data of a data set are written. Never under a debugger or a compiler, in the main
thread alone, and with an end to what it may cost. A frame that is followed gets a copy of its variables, which is
emptied again; where the function may hold that very copy it cannot be, and it is not followed.
"""

from __future__ import annotations

import ast
import sys
import threading
from time import thread_time
from types import FunctionType

from ... import objects, user_code
from ..loops import inlined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

EVENTS, CALLS, SECONDS = 4000, 50_000, 0.04
"""Lines followed in one step, calls of anything in it, and seconds of looking at the memory."""
GENERATORS = 0x20 | 0x80 | 0x200
"""Code flags: generators and coroutines."""
_changed: Callable[[], bool] | None = None
_owners: frozenset[int] = frozenset()
_marked: list[FrameType] = []
_resumed: list[FrameType] = []
"""Generators that were entered meanwhile: they outlive the step, and so would the copy of their variables."""
_last: tuple[FrameType, int] | None = None
_events = _calls = 0
_spent = 0.0
_files: dict[str, bool] = {}
found: dict[str, Any] | None = None
"""What was found: the site, and whether the data set's own code, or a name of the data set's, wrote."""


def follow(frame: FrameType, changed: Callable[[], bool], owners: frozenset[int]) -> bool:
    """Follow the lines of user code from this frame on, until `changed` says so. False: it cannot be done here."""
    global _changed, _owners, _last, _events, _calls, _spent, found
    if sys.gettrace() is not None or threading.current_thread() is not threading.main_thread():
        return False
    if _compiles():
        return False
    here: FrameType | None = frame
    while here is not None:
        if _is_users(here):
            if _is_closed(here):
                break
            if here.f_trace is None:
                _marked.append(here)
        here = here.f_back
    if not _marked:
        return False
    _changed, _owners, _events, _calls, _spent, found = changed, owners, 0, 0, 0.0, None
    _last = (_marked[0], _marked[0].f_lineno or 0)
    for each in _marked:
        each.f_trace = _in_frame
    sys.settrace(_at_call)
    return True


def _compiles() -> bool:
    """Something was compiled in this process: its frames are not for anybody to follow."""
    counted = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None)
    return isinstance(counted, dict) and bool(counted.get("frames"))


def following() -> bool:
    return bool(_marked)


def leave() -> None:
    """The step is over: nothing of this is left, also not the frames' copies of their variables."""
    global _changed, _last
    if sys.gettrace() is _at_call:
        sys.settrace(None)
    _changed, _last = None, None
    for each in _marked:
        if each.f_trace is _in_frame:
            each.f_trace = None
    for each in (*_marked, *_resumed):
        if each.f_code.co_flags & objects.FAST == objects.FAST:
            objects.locals_of(each)
    _marked.clear()
    _resumed.clear()


def _is_closed(frame: FrameType) -> bool:
    """It may hold the copy of its variables (`locals()`), which would then be kept, or emptied under its hands."""
    code = frame.f_code
    return sys.version_info < (3, 13) and code.co_flags & objects.FAST == objects.FAST and objects._may_hold(code)


def _is_users(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    if file not in _files:
        _files[file] = user_code.is_user_file(file)
    return _files[file]


def _at_call(frame: FrameType, event: str, argument: object) -> Any:
    global _calls
    _calls += 1
    if _calls > CALLS and sys.gettrace() is _at_call:
        sys.settrace(None)
    if frame.f_code.co_flags & GENERATORS and len(_resumed) < 256 and frame not in _resumed:
        _resumed.append(frame)
    return _in_frame if _changed is not None and _is_users(frame) and not _is_closed(frame) else None


def _in_frame(frame: FrameType, event: str, argument: object) -> Any:
    """What changed since the last event was changed by the line of that event."""
    global _changed, _last, _events, _spent
    if _changed is None:
        return None
    try:
        began = thread_time()
        _events += 1
        if _changed():
            _note()
            _changed = None
        elif event == "line":
            _last = (frame, frame.f_lineno or 0)
        elif event == "return" and frame.f_back is not None and _is_users(frame.f_back):
            _last = (frame.f_back, frame.f_back.f_lineno or 0)
            if _is_closed(frame.f_back):
                _changed = None
        _spent += thread_time() - began
        if _events > EVENTS or _spent > SECONDS:
            _changed = None
    except Exception:
        _changed = None
    if _changed is None:
        if sys.gettrace() is _at_call:
            sys.settrace(None)
        return None
    return _in_frame


def _note() -> None:
    global found
    if _last is None:
        return
    frame, line = _last
    file = frame.f_code.co_filename
    found = {"site": [user_code.absolute(file), line, user_code.name_of(frame.f_code)], "own": _is_own(frame, line)}


def _is_own(frame: FrameType, line: int) -> bool:
    """A method of the data set, or of what it holds, is at work; or the line writes to what it calls the data set's."""
    here: FrameType | None = frame
    while here is not None:
        if _is_users(here) and _is_method_of_own(here):
            return True
        here = None if here in _marked else here.f_back
    tree = inlined.tree_of(frame.f_code.co_filename)
    if tree is None:
        return False
    statements = [n for n in ast.walk(tree) if isinstance(n, _WRITING) and n.lineno <= line <= (n.end_lineno or line)]
    return any(_named_own(target, frame) for statement in statements for target in _targets(statement))


def _is_method_of_own(frame: FrameType) -> bool:
    """Its first argument is the data set, or held by it, and the code stands in that one's class."""
    code = frame.f_code
    first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
    if first is None or id(first) not in _owners:
        return False
    known = [value for kind in type(first).__mro__ for value in vars(kind).values() if type(value) is FunctionType]
    wrapped = [value.__dict__.get("__wrapped__") for value in known]
    return any(type(value) is FunctionType and value.__code__ is code for value in (*known, *wrapped))


def _targets(statement: ast.stmt) -> list[ast.expr]:
    if isinstance(statement, ast.Assign):
        return [*statement.targets, statement.value]
    if isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
        return [statement.target]
    return [statement.value] if isinstance(statement, ast.Expr) else []


def _named_own(node: ast.expr, frame: FrameType) -> bool:
    """`dataset.bank[i]`, `self.data.bank.mul_(m)`: something on the way is the data set or held by it."""
    path: list[ast.expr] = []
    here: ast.expr | None = node
    while here is not None:
        path.append(here)
        below = here.func if isinstance(here, ast.Call) else getattr(here, "value", None)
        here = below if isinstance(below, ast.expr) else None
    root = path[-1]
    if not isinstance(root, ast.Name):
        return False
    known = frame.f_locals
    thing = known[root.id] if root.id in known else frame.f_globals.get(root.id)
    for step in reversed(path[:-1]):
        if id(thing) in _owners:
            return True
        own = objects.instance_dict(thing) if isinstance(step, ast.Attribute) else None
        if own is None or step.attr not in own:  # type: ignore[attr-defined]  # it is an Attribute
            return False
        thing = own[step.attr]  # type: ignore[attr-defined]
    return id(thing) in _owners


_WRITING = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)
