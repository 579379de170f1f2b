"""A loop that asks a helper in each round and waits for the answer, though no later round needs it: read from source.

A helper is a process, a thread or a program of the script's own. Only what is certain counts: a loop in which an answer
may lead to the next request or end the loop, or whose requests are made elsewhere, is no such loop.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .source import Source, around

Place = tuple[str, int, str]  # file, line and function of a frame
Loop = ast.For | ast.While | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
LOOPS = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
ASKS = frozenset(
    ("send", "send_bytes", "sendall", "put", "put_nowait", "submit", "apply_async", "start", "set", "release", "write")
)
ANSWERS = frozenset(("recv", "recv_bytes", "get", "result", "join", "wait", "readline", "acquire", "communicate"))
BOTH = frozenset(("apply", "run", "check_output", "check_call"))  # it asks and waits itself
EXECUTORS = ("Executor", "Pool")
COUNTS = ("max_workers", "processes")  # as an executor is told, if not by its first argument
FLOWS = 4  # names that are made from names that are made from …


@dataclass(frozen=True)
class Asking:
    file: str
    first: int
    last: int
    place: int  # of the frame in which the loop is
    helpers: int = 0  # that the executor asked in it may have, as written; 0: none, or not known


def asking_loop(frames: tuple[Place, ...], waits: Iterable[tuple[str, int]], source: Source) -> Asking | None:
    """The loop around a wait, whose frames are given innermost first. `waits`: lines at which the training waits."""
    asked, kept = False, set[str]()
    for place, (file, line, _) in enumerate(frames):
        tree = source.tree(file)
        if tree is None or not (place or _waits_at(tree, line)):
            return None
        function, loop = _here(tree, line)
        names = ASKS | _functions_that_ask(tree)
        answers = {at for other, at in waits if other == file} | {line}
        flow = Flow(tree, answers, {frames[place - 1][2].rpartition(".")[2]} if place else _waits_at(tree, line))
        asks = _requests(_body(loop) if loop is not None else [], line, names, alone=place == 0)
        if loop is not None and (asked or asks):
            every = _requests(_body(loop), loop.end_lineno or line, names, alone=False)
            if not flow.rounds_are_free(loop, every, kept):
                return None
            helpers = _helpers(tree) if any(_name(ask) in ("submit", "apply_async", *BOTH) for ask in asks) else 0
            return Asking(file, loop.lineno, loop.end_lineno or loop.lineno, place, helpers)
        if loop is not None and not isinstance(loop, ast.While):
            return None  # it only gathers what was asked before
        body = getattr(function, "body", [])
        body = body if isinstance(body, list) else [body]
        asks = _requests(body, line, names, alone=place == 0)
        kept |= {name for name in flow.led(body) if "." in name}
        if flow.needs(asks, kept, set()):
            return None
        asked = asked or bool(asks)
    return None


def _here(tree: ast.Module, line: int) -> tuple[ast.AST, Loop | None]:
    """The innermost function there, and the innermost loop in it whose rounds run that line."""
    function: ast.AST = tree
    loop: Loop | None = None
    for node in around(tree, line):
        if isinstance(node, FUNCTIONS):
            function, loop = node, None
        elif isinstance(node, LOOPS) and any(_covers(each, line) for each in _body(node)):
            loop = node
    return function, loop


def _body(loop: Loop) -> list[ast.AST]:
    """What each round runs."""
    if isinstance(loop, ast.For | ast.While):
        return list(loop.body)
    parts = [loop.key, loop.value] if isinstance(loop, ast.DictComp) else [loop.elt]
    return [part for part in parts if any(isinstance(node, ast.Call) for node in ast.walk(part))]


def _requests(body: Iterable[ast.AST], line: int, names: frozenset[str], *, alone: bool) -> list[ast.Call]:
    """Calls of these names written up to that line. `alone`: the line itself may ask and wait at once."""
    calls = [node for node in _nodes(body) if isinstance(node, ast.Call) and node.lineno <= line]
    both = BOTH if alone else frozenset[str]()
    return [call for call in calls if _name(call) in names or (_name(call) in both and _covers(call, line))]


def _functions_that_ask(tree: ast.Module) -> frozenset[str]:
    """That do not wait for the answer as well."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            called = {_name(each) for each in _nodes(node.body) if isinstance(each, ast.Call)}
            if called & ASKS and not called & (ANSWERS | BOTH):
                found.add(node.name)
    return frozenset(found)


# --- does a request need an earlier answer? --------------------------------------------------------------------------


class Flow:
    """Where answers go in one function of a file."""

    def __init__(self, tree: ast.Module, answers: set[int], called: set[str]) -> None:
        """Lines that wait for an answer; what they call for it: the function of the next frame within, or `recv`."""
        self.answers, self.called = answers, called
        self.functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}

    def rounds_are_free(self, loop: Loop, asks: list[ast.Call], kept: set[str]) -> bool:
        """By all that is asked in it. `kept`: what objects keep of an answer, in functions called from this loop."""
        nodes = list(_nodes(_body(loop)))
        if any(isinstance(node, ast.Break | ast.Return | ast.Yield) for node in nodes):
            return False
        asks = asks + [node for node in nodes if isinstance(node, ast.Call) and _name(node) in self.called]
        own = set[str]()
        tests = [node.test for node in nodes if isinstance(node, ast.If | ast.While | ast.IfExp)]
        if isinstance(loop, ast.For | ast.While):
            tests.append(loop.test if isinstance(loop, ast.While) else loop.iter)
            kept = kept | self.led(loop.body)
        if isinstance(loop, ast.For):
            own = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
        return bool(asks) and not self.needs(asks, kept - own, own, tests)

    def needs(self, asks: list[ast.Call], led: set[str], own: set[str], tests: Iterable[ast.AST] = ()) -> bool:
        """What is asked, whom, or whether, may depend on something that an answer has led to."""
        whom = {ast.unparse(ask.func.value) for ask in asks if isinstance(ask.func, ast.Attribute)} - {"self"}
        read = whom | self._reads(part for ask in asks for part in (*ask.args, *(each.value for each in ask.keywords)))
        read |= self._reads(tests).union(*(self._inside(ask) for ask in asks))
        return any(_conflict(each, name, own) for each in read for name in led)

    def led(self, body: Iterable[ast.AST]) -> set[str]:
        """Names, attributes and elements that get something of an answer."""
        simple = [node for node in _nodes(body) if isinstance(node, ast.stmt) and not hasattr(node, "body")]
        led: set[str] = set()
        for _ in range(FLOWS):
            before = len(led)
            for statement in simple:
                of_answer = any(_covers(statement, at) for at in self.answers) or self._calls(statement)
                if of_answer or any(_conflict(read, name, set()) for read in self._reads([statement]) for name in led):
                    led |= set(self._given(statement))
            if len(led) == before:
                break
        return led

    def _calls(self, statement: ast.stmt) -> bool:
        return any(isinstance(node, ast.Call) and _name(node) in self.called for node in ast.walk(statement))

    def _given(self, statement: ast.stmt) -> Iterator[str]:
        """What a statement gives a value: targets, and objects whose methods are called with something."""
        exchanging = ASKS | ANSWERS | BOTH | self.called
        for node in ast.walk(statement):
            if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
                yield ast.unparse(node)
            elif isinstance(node, ast.Call) and node.args and _name(node) not in exchanging:
                yield from [ast.unparse(node.func.value)] if isinstance(node.func, ast.Attribute) else []

    def _reads(self, nodes: Iterable[ast.AST], *, deeper: bool = True) -> set[str]:
        """Names, attributes and elements, those in functions of the file that are called included; how long something
        is tells nothing of what is in it."""
        found: set[str] = set()
        left = list(nodes)
        while left:
            node = left.pop()
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len":
                continue
            if isinstance(node, ast.Call) and deeper:
                found |= self._inside(node)
            if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
                found.add(ast.unparse(node))
            if isinstance(node, ast.Subscript):
                left.append(node.slice)
            if isinstance(node, ast.Attribute | ast.Subscript):
                left += [] if isinstance(node.value, ast.Name | ast.Attribute) else [node.value]
            else:
                left += ast.iter_child_nodes(node)
        return found

    def _inside(self, call: ast.Call) -> set[str]:
        """What a function of the file reads that is not its own."""
        function = self.functions.get(_name(call))
        if function is None:
            return set()
        own = {each.id for each in ast.walk(function) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
        own |= {each.arg for each in ast.walk(function) if isinstance(each, ast.arg)} - {"self"}
        return {name for name in self._reads(function.body, deeper=False) if _root(name) not in own}


def _conflict(read: str, led: str, own: set[str]) -> bool:
    """An element of its own in each round, `states[k]`, is no other round's."""
    if read == led and own & set(re.findall(r"\w+", led.partition("[")[2])):
        return False
    base, other = read.partition("[")[0], led.partition("[")[0]
    return base == other or base.startswith(other + ".") or other.startswith(base + ".")


# --- small readings --------------------------------------------------------------------------------------------------


def _helpers(tree: ast.Module) -> int:
    """Of the smallest executor in the file."""
    given = [node for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)]
    constants = {ast.unparse(node.targets[0]): getattr(node.value, "value", None) for node in given}
    counts = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node).endswith(EXECUTORS):
            named = [keyword.value for keyword in node.keywords if keyword.arg in COUNTS]
            count = next(iter([*node.args[:1], *named]), None)
            value = constants.get(count.id) if isinstance(count, ast.Name) else getattr(count, "value", None)
            counts.append(os.cpu_count() or 1 if count is None else value if isinstance(value, int) else 0)
    return min(counts, default=0)


def _waits_at(tree: ast.Module, line: int) -> set[str]:
    return {_name(node) for node in around(tree, line) if isinstance(node, ast.Call)} & (ANSWERS | BOTH)


def _nodes(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Not those of functions defined within."""
    for node in body:
        yield node
        if not isinstance(node, FUNCTIONS):
            yield from _nodes(ast.iter_child_nodes(node))


def _name(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _covers(node: ast.AST, line: int) -> bool:
    first = getattr(node, "lineno", line)
    return bool(first <= line <= (getattr(node, "end_lineno", None) or first))


def _root(name: str) -> str:
    return re.split(r"[.\[]", name, maxsplit=1)[0]
