"""The line that writes to a piece of memory: for one step the lines of the user's own code are followed.

Only where it is proven already that data of a dataset are written. Never under a debugger or a compiler, in the main
thread alone, and with an end to what it may cost. A frame that is followed gets a copy of its variables, which is
emptied again; where the function may hold that very copy it cannot be, and it is not followed.
"""

from __future__ import annotations

import ast
import sys
import threading
from collections.abc import Callable
from functools import lru_cache
from itertools import takewhile
from time import thread_time
from types import FrameType, FunctionType
from typing import Any

from ... import governor, guard, hiding, objects, user_code
from ...records import Site
from ..loops.expressions import Scope
from ..loops.parsed_source import covers, tree_of

MOST_LINES, MOST_CALLS, MOST_SECONDS = 4000, 50_000, 0.04  # followed in one step; of looking at the memory
MOST_GENERATORS = 256  # that are followed
OUTLIVES = 0x20 | 0x80 | 0x200  # code flags: generators and coroutines
_WRITING = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)


class WritingLine:
    """Follows one step at a time; `changed` says whether the memory is still as it was."""

    def __init__(self, probe: str, changed: Callable[[], bool]) -> None:
        self._probe, self._changed = probe, changed
        self.site: Site | None = None  # what was found in the last step that was followed;
        self.own = False  # the dataset's own code wrote, or a line that calls what it writes to the dataset's
        self._looks = False
        self._owners: frozenset[int] = frozenset()
        self._marked: list[FrameType] = []
        self._resumed: list[FrameType] = []
        """Generators that were entered meanwhile: they outlive the step, and so would the copy of their variables."""
        self._last: tuple[FrameType, int] | None = None
        self._events = self._calls = 0
        self._spent = 0.0
        # One object each: whether it is ours that is set is asked by identity.
        self._at_call, self._at_line = self._called, self._passed

    def follow(self, frame: FrameType, owners: frozenset[int]) -> None:
        """Follow the lines of user code from this frame on, where that can be done; `owners` are ids of the dataset and
        of what it holds."""
        if sys.gettrace() is not None or threading.current_thread() is not threading.main_thread():
            return
        if hiding.has_compiled():
            return
        self._marked = _followable(frame)
        if not self._marked:
            return
        self._owners, self._events, self._calls, self._spent = owners, 0, 0, 0.0
        self.site, self.own, self._looks = None, False, True
        self._last = (self._marked[0], self._marked[0].f_lineno or 0)
        for marked in self._marked:
            marked.f_trace = self._at_line
        sys.settrace(self._at_call)

    def leave(self) -> bool:
        """The step is over: nothing of this is left, also not the frames' copies of their variables. True if one was
        followed."""
        self._stop()
        self._last = None
        for frame in self._marked:
            if frame.f_trace is self._at_line:
                frame.f_trace = None
        for frame in (*self._marked, *self._resumed):
            if frame.f_code.co_flags & objects.FAST == objects.FAST:
                objects.locals_of(frame)
        followed = bool(self._marked)
        self._marked, self._resumed = [], []
        return followed

    def _stop(self) -> None:
        self._looks = False
        if sys.gettrace() is self._at_call:
            sys.settrace(None)

    def _called(self, frame: FrameType, _event: str, _argument: object) -> Any:
        self._calls += 1
        if self._calls > MOST_CALLS:
            self._stop()
        if frame.f_code.co_flags & OUTLIVES and len(self._resumed) < MOST_GENERATORS and frame not in self._resumed:
            self._resumed.append(frame)
        return self._at_line if self._looks and _is_users(frame) and not _is_closed(frame) else None

    def _passed(self, frame: FrameType, event: str, _argument: object) -> Any:
        """What changed since the last event was changed by the line of that event."""
        if not self._looks:
            return None
        began = thread_time()
        try:
            with governor.Reading() as reading:
                self._look(frame, event)
                reading.spent_by(self._probe)
        except Exception as fault:
            self._looks = False
            guard.off(self._probe, fault)  # what a signal handler raised goes on from here
        self._events += 1
        self._spent += thread_time() - began
        if self._looks and self._events <= MOST_LINES and self._spent <= MOST_SECONDS:
            return self._at_line
        self._stop()
        return None

    def _look(self, frame: FrameType, event: str) -> None:
        back = frame.f_back
        if self._changed():
            self._found()
            self._looks = False
        elif event == "line":
            self._last = (frame, frame.f_lineno or 0)
        elif event == "return" and back is not None and _is_users(back):
            self._last = (back, back.f_lineno or 0)
            self._looks = not _is_closed(back)

    def _found(self) -> None:
        if self._last is not None:
            frame, line = self._last
            file, function = user_code.absolute(frame.f_code.co_filename), user_code.name_of(frame.f_code)
            self.site, self.own = (file, line, function), self._is_own(frame, line)

    def _is_own(self, frame: FrameType, line: int) -> bool:
        """A method of the dataset, or of what it holds, is at work; or the line writes to what it calls that."""
        for caller in user_code.frames(frame):
            if _is_users(caller) and _is_method_of(caller, self._owners):
                return True
            if caller in self._marked:
                break
        tree = tree_of(frame.f_code.co_filename)
        statements = [] if tree is None else [node for node in ast.walk(tree) if isinstance(node, _WRITING)]
        at_line = [node for node in statements if covers(node, line)]
        scope = Scope(dict(frame.f_locals), frame.f_globals)
        return any(_names(target, scope, self._owners) for node in at_line for target in _targets(node))


_is_user_file = lru_cache(maxsize=1000)(user_code.is_user_file)


def _is_users(frame: FrameType) -> bool:
    return _is_user_file(frame.f_code.co_filename)


def _followable(frame: FrameType) -> list[FrameType]:
    """Frames of user code, the innermost first, up to one that may not be followed."""
    users = takewhile(lambda caller: not _is_closed(caller), filter(_is_users, user_code.frames(frame)))
    return [caller for caller in users if caller.f_trace is None]


def _is_closed(frame: FrameType) -> bool:
    """It may hold the copy of its variables (`locals()`), which would then be kept, or emptied under its hands."""
    code = frame.f_code
    return sys.version_info < (3, 13) and code.co_flags & objects.FAST == objects.FAST and objects.may_hold_locals(code)


def _is_method_of(frame: FrameType, owners: frozenset[int]) -> bool:
    """Its first argument is one of these, and the code stands in that one's class."""
    code = frame.f_code
    first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
    if first is None or id(first) not in owners:
        return False
    spaces = [objects.class_dict(kind) for kind in objects.mro_of(type(first))]
    known = [value for space in spaces for value in space.values() if type(value) is FunctionType]
    wrapped = [value.__dict__.get("__wrapped__") for value in known]
    return any(type(value) is FunctionType and value.__code__ is code for value in (*known, *wrapped))


def _targets(statement: ast.stmt) -> list[ast.expr]:
    if isinstance(statement, ast.Assign):
        return [*statement.targets, statement.value]
    if isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
        return [statement.target]
    return [statement.value] if isinstance(statement, ast.Expr) else []


def _names(node: ast.expr, scope: Scope, owners: frozenset[int]) -> bool:
    """`dataset.bank[i]`, `self.data.bank.mul_(m)`: something on the way is one of these."""
    here: Any = node
    while isinstance(here, ast.expr):
        if id(scope.find(here)) in owners:
            return True
        here = here.func if isinstance(here, ast.Call) else getattr(here, "value", None)
    return False
