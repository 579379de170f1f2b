"""Whether the test of a `while` stays true whatever its body does: read from the source, with bounds on whole numbers.

`start = (start + size) % (n - size)` keeps `start + size <= n` true, and so does a position that is set to 0 as soon as
it is too large. Each way through the body is followed with what is known of the tested names: inequalities between
sums of names. Only a test that is proven to hold at the end of every way counts.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import combinations_with_replacement

from .parsed_source import FUNCTIONS, Function, beneath, called, is_small, own_nodes, text

MOST_WAYS = 64  # through a body
MOST_FACTS = 24  # that are known at one place
Sum = dict[str, int]
"""Factors of names, by their text; the number itself is at the empty text."""
Facts = tuple[Sum, ...]
"""Sums that are at most 0."""
_CHANGING = frozenset(("append", "extend", "insert", "pop", "popleft", "remove", "clear", "update", "add", "discard"))
_SIZES = frozenset(("len", "size", "numel", "shape", "min", "max", "abs"))
_READING = frozenset(
    ("len", "sorted", "list", "tuple", "set", "min", "max", "sum", "enumerate", "zip", "range", "reversed", "print",
     "sample", "choice", "choices", "randint", "randrange", "index", "count", "tensor", "stack", "int", "float")
)  # fmt: skip
"""Functions that leave what they are given as it is."""
_LEAVING = (ast.Return, ast.Raise, ast.Await, ast.Try, ast.Global, ast.Nonlocal, ast.NamedExpr, ast.Delete)
_PLAIN = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.BinOp, ast.operator, ast.expr_context, ast.UnaryOp)


def stays_true(loop: ast.While, function: Function | ast.Module) -> bool:
    """Nothing leaves the loop, and its test holds after every round if it held before."""
    inside = [node for statement in loop.body for node in ast.walk(statement)]
    if not is_small(loop.test) or any(isinstance(node, _LEAVING) for node in inside):
        return False
    if any(isinstance(node, ast.Break) for node in _own_breaks(loop.body)):
        return False
    reading = _Reading(loop, function, inside)
    goals = reading.sums(loop.test, True)
    if goals is None or not reading.is_fixed():
        return False
    if not any(reading.changed & goal.keys() for goal in goals) and not reading.owns_all():
        return False  # a queue that somebody else empties
    known = (*goals, *reading.at_entry(goals))
    ends = reading.ways(loop.body, [known])
    return ends is not None and all(_follows(goal, facts) for facts in ends for goal in goals)


def _own_breaks(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    return (
        placed.statement for placed in beneath(body) if isinstance(placed.statement, ast.Break) and not placed.nested
    )


class _Reading:
    """One loop: what its names are, and what each way through its body does to them."""

    def __init__(self, loop: ast.While, function: Function | ast.Module, inside: list[ast.AST]) -> None:
        self._loop, self._inside = loop, inside
        stored = (ast.Store, ast.Del)
        self.changed = {text(node) for node in inside if isinstance(getattr(node, "ctx", None), stored)}
        before = [each for each in function.body if each.lineno < loop.lineno]
        self._before = [pair for statement in before for pair in _pairs(statement)]
        names = [
            node.id for node in own_nodes(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        ]
        self._defined: dict[str, ast.expr] = {}
        for name, value in self._before:
            if value is not None and names.count(name) == 1:
                self._defined[name] = value
        self.atoms: set[str] = set()

    def is_fixed(self) -> bool:
        """What the tested names are compared with is the same in every round."""
        touched = {
            text(node.func.value)
            for node in self._inside
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            if node.func.attr in _CHANGING or node.func.attr.endswith("_")
        }
        touched |= {name.partition("[")[0] for name in self.changed if "[" in name}
        touched |= {name for node in self._inside for name in _handed_out(node)}
        opaque = [ast.parse(atom, mode="eval") for atom in self.atoms if not atom.isidentifier()]
        parts = {
            text(node) for tree in opaque for node in ast.walk(tree) if isinstance(node, (ast.Name, ast.Attribute))
        }
        return not parts & (touched | self.changed)

    def owns_all(self) -> bool:
        """It tests a position that never moves, or counts what the function itself made: nobody else changes that."""
        tested = [self._defined.get(node.id) for node in ast.walk(self._loop.test) if isinstance(node, ast.Name)]
        if any(isinstance(value, ast.Constant) for value in tested):
            return True
        counted = [ast.parse(atom, mode="eval").body for atom in self.atoms if atom.startswith("len(")]
        things = [node.args[0] for node in counted if isinstance(node, ast.Call) and node.args]
        made = [self._defined.get(text(thing)) for thing in things]
        return bool(made) and not any(value is None or isinstance(value, (ast.Name, ast.Attribute)) for value in made)

    # --- sums --------------------------------------------------------------------------------------------------------

    def sum(self, node: ast.expr, deep: int = 4) -> Sum | None:
        """An expression as a sum of names; None where it is not known to be a whole number that stays what it is."""
        if not is_small(node):
            return None
        if isinstance(node, ast.Constant):
            return {"": node.value} if type(node.value) is int else None
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return _times(self.sum(node.operand, deep), -1)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            left, right = self.sum(node.left, deep), self.sum(node.right, deep)
            return _plus(left, _times(right, 1 if isinstance(node.op, ast.Add) else -1))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            left, right = self.sum(node.left, deep), self.sum(node.right, deep)
            for one, other in ((left, right), (right, left)):
                if one is not None and not one.keys() - {""}:
                    return _times(other, one.get("", 0))
        if isinstance(node, ast.Name) and node.id in self._defined and node.id not in self.changed and deep:
            known = self.sum(self._defined[node.id], deep - 1)
            if known is not None:
                return known
        return self._atom(node)

    def _atom(self, node: ast.expr) -> Sum | None:
        name = text(node)
        if not isinstance(node, ast.Name):
            for part in ast.walk(node):
                if isinstance(part, ast.Name) and part.id in self.changed:
                    return None
                size = isinstance(part, ast.Call) and text(part.func).rpartition(".")[2] in _SIZES
                if not (size or isinstance(part, _PLAIN)) or isinstance(part, ast.Div) or "…" in name:
                    return None
        self.atoms.add(name)
        return {name: 1}

    def sums(self, test: ast.expr, wanted: bool) -> Facts | None:
        """Inequalities that say the same as a condition; None where none do."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self.sums(test.operand, not wanted)
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) == wanted:
            parts = [self.sums(part, wanted) for part in test.values]
            return None if None in parts else tuple(each for part in parts for each in part or ())
        if not isinstance(test, ast.Compare) or (len(test.ops) > 1 and not wanted):
            return None
        found: list[Sum] = []
        for left, how, right in zip([test.left, *test.comparators], test.ops, test.comparators, strict=False):
            form = _plus(self.sum(left), _times(self.sum(right), -1))
            made = None if form is None else _compared(form, how, wanted)
            if made is None:
                return None
            found += made
        return tuple(found)

    def at_entry(self, goals: Facts) -> Facts:
        """The test held when the loop was entered, with what the names were given before it."""
        given = {name: self.sum(value) for name, value in self._before if value is not None and name in self.changed}
        found: list[Sum] = []
        for goal in goals:
            form: Sum | None = goal
            for name in self.changed & goal.keys():
                form = _put(form, name, given.get(name))
            if form is not None and not self.changed & form.keys():
                found.append(form)
        return tuple(found)

    # --- ways through the body ---------------------------------------------------------------------------------------

    def ways(self, body: list[ast.stmt], before: list[Facts]) -> list[Facts] | None:
        """What is known at the end of each way, also of those that go on with the next round early."""
        ended: list[Facts] = []
        open_ways = self._through(body, before, ended)
        return None if open_ways is None else [*open_ways, *ended]

    def _through(self, body: list[ast.stmt], before: list[Facts], ended: list[Facts]) -> list[Facts] | None:
        now: list[Facts] | None = before
        for statement in body:
            if now is None or len(now) + len(ended) > MOST_WAYS:
                return None
            if isinstance(statement, ast.Continue):
                ended += now
                return []
            now = self._after(statement, now, ended)
        return now

    def _after(self, statement: ast.stmt, before: list[Facts], ended: list[Facts]) -> list[Facts] | None:
        if isinstance(statement, ast.If):
            branches = ((statement.body, True), (statement.orelse, False))
            ways = [self._through(body, self._if(before, statement.test, way), ended) for body, way in branches]
            return None if None in ways else [facts for way in ways for facts in way or ()]
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            return self._through(statement.body, before, ended)
        if isinstance(statement, ast.Match):
            return None
        if isinstance(statement, (ast.For, ast.AsyncFor, ast.While)):
            lost = {text(node) for node in ast.walk(statement) if isinstance(getattr(node, "ctx", None), ast.Store)}
            return [tuple(fact for fact in facts if not lost & fact.keys()) for facts in before]
        for name, value in [] if isinstance(statement, FUNCTIONS) else _pairs(statement):
            if isinstance(value, ast.IfExp):
                yes, no = self._if(before, value.test, True), self._if(before, value.test, False)
                before = [
                    *(self._given(facts, name, value.body) for facts in yes),
                    *(self._given(facts, name, value.orelse) for facts in no),
                ]
            else:
                before = [self._given(facts, name, value) for facts in before]
        return before

    def _if(self, before: list[Facts], test: ast.expr, wanted: bool) -> list[Facts]:
        more = self.sums(test, wanted)
        return [
            (*facts, *(self._unequal(facts, test, wanted) if more is None else more))[-MOST_FACTS:] for facts in before
        ]

    def _unequal(self, facts: Facts, test: ast.expr, wanted: bool) -> list[Sum]:
        """`left != 0` where `left >= 0` is known: it is at least 1."""
        if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.NotEq if wanted else ast.Eq):
            return []
        form = _plus(self.sum(test.left), _times(self.sum(test.comparators[0]), -1))
        sides = [] if form is None or len(test.ops) > 1 else [form, _times(form, -1) or {}]
        return [_plus(side, {"": 1}) or {} for side in sides if _follows(side, facts)]

    def _given(self, facts: Facts, name: str, value: ast.expr | None) -> Facts:
        """After `name = value`."""
        form = None if value is None else self.sum(value)
        if form is not None and form.get(name) == 1:  # it is moved: what was known of it moves with it
            back = _plus({name: 2}, _times(form, -1))
            return tuple(moved for fact in facts if (moved := _put(fact, name, back)) is not None)
        kept = tuple(fact for fact in facts if name not in fact)
        if form is not None and name not in form:
            return (*kept, *_both({name: 1}, form))
        return (*kept, *self._bounds(name, value))

    def _bounds(self, name: str, value: ast.expr | None) -> Iterator[Sum]:
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mod):
            most = self.sum(value.right)
            if most is not None and name not in most:
                yield from (form for form in (_plus({name: 1, "": 1}, _times(most, -1)), {name: -1}) if form)
        elif isinstance(value, ast.Call) and text(value.func) in ("min", "max") and not value.keywords:
            for part in value.args:
                bound = self.sum(part)
                form = _plus({name: 1}, _times(bound, -1))
                if form is not None and bound is not None and name not in bound:
                    yield form if text(value.func) == "min" else {key: -factor for key, factor in form.items()}


def _handed_out(node: ast.AST) -> list[str]:
    """Names under which somebody else gets what may be changed: another name, a function, whoever draws."""
    if isinstance(node, (ast.Assign, ast.Yield)):
        return [text(node.value)] if isinstance(node.value, ast.Name) else []
    return _given_to(node) if isinstance(node, ast.Call) else []


def _given_to(call: ast.Call) -> list[str]:
    if called(call) in _READING:
        return []
    given = [text(each) for each in call.args if isinstance(each, ast.Name)]
    own = isinstance(call.func, ast.Attribute) and text(call.func.value) == "self"
    return [*given, "self"] if own else given


def _pairs(statement: ast.stmt) -> list[tuple[str, ast.expr | None]]:
    """Names that a statement gives a value, one after the other; None: one that is not known."""
    if isinstance(statement, ast.AugAssign):
        target: ast.expr = statement.target
        value = ast.BinOp(ast.Name(text(target), ast.Load()), statement.op, statement.value)
        return [(text(target), ast.copy_location(value, statement))]
    if isinstance(statement, ast.AnnAssign):
        return [(text(statement.target), statement.value)]
    if not isinstance(statement, ast.Assign):
        return []
    pairs: list[tuple[str, ast.expr | None]] = []
    for target in statement.targets:
        parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        values: list[ast.expr | None] = [None] * len(parts)
        if parts == [target]:
            values = [statement.value]
        elif isinstance(statement.value, (ast.Tuple, ast.List)) and len(statement.value.elts) == len(parts):
            read = {node.id for node in ast.walk(statement.value) if isinstance(node, ast.Name)}
            if not read & set(map(text, parts)):  # else they are given all at once
                values = list(statement.value.elts)
        pairs += zip(map(text, parts), values, strict=True)
    return pairs


# --- sums that are at most 0 -----------------------------------------------------------------------------------------


def _plus(one: Sum | None, other: Sum | None) -> Sum | None:
    if one is None or other is None:
        return None
    both = {name: one.get(name, 0) + other.get(name, 0) for name in one.keys() | other.keys()}
    return {name: factor for name, factor in both.items() if factor}


def _times(one: Sum | None, factor: int) -> Sum | None:
    return None if one is None else {name: each * factor for name, each in one.items() if each * factor}


def _both(one: Sum, other: Sum) -> list[Sum]:
    """They are equal."""
    forms = _plus(one, _times(other, -1)), _plus(other, _times(one, -1))
    return [form for form in forms if form is not None]


def _put(form: Sum | None, name: str, value: Sum | None) -> Sum | None:
    """The sum with a value in the place of a name."""
    if form is None or name not in form:
        return form
    return _plus({key: factor for key, factor in form.items() if key != name}, _times(value, form[name]))


def _compared(form: Sum, how: ast.cmpop, wanted: bool) -> list[Sum] | None:
    """`form`: left side minus right side."""
    less = isinstance(how, ast.Lt if wanted else ast.GtE), isinstance(how, ast.LtE if wanted else ast.Gt)
    more = isinstance(how, ast.Gt if wanted else ast.LtE), isinstance(how, ast.GtE if wanted else ast.Lt)
    if any(less):
        return [_plus(form, {"": 1} if less[0] else {}) or {}]
    if any(more):
        return [_plus(_times(form, -1), {"": 1} if more[0] else {}) or {}]
    if isinstance(how, ast.Eq if wanted else ast.NotEq):
        return [form, _times(form, -1) or {}]
    return None


def _follows(goal: Sum, facts: Facts) -> bool:
    """One or two of the facts, or what every length is, make the goal at most 0."""
    sizes = [{name: -1} for name in goal if name.startswith("len(") or ".size(" in name or ".shape[" in name]
    known = [{}, *facts, *sizes]
    for one, other in combinations_with_replacement(known, 2):
        rest = _plus(_plus(goal, _times(one, -1)), _times(other, -1)) or {}
        if not rest.keys() - {""} and rest.get("", 0) <= 0:
            return True
    return False
