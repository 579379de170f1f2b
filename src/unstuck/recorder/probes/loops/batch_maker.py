"""How the code of a loop makes the batch of each step: read from the source, never run.

That all batches are the same is measured elsewhere. Full-batch training and one batch on purpose look just so; what
tells them from a mistake is code in the loop that is meant to give another batch each time and cannot: it seeds its
generator anew, takes the first element of a new iterator, or cuts at a position that nothing moves.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from types import FrameType
from typing import NamedTuple

from ... import lengths, tensors, user_code
from ...objects import UNKNOWN
from ...records import Site
from ...records.loops import Drawn, FedBy, Remade
from . import parsed_source
from .conditions import Called, called, in_callers_names
from .expressions import Scope, scope_of
from .parsed_source import Function, around_line, beneath, covers, is_small, own_parts, text
from .statements import MAKING, gives, stores

MOST_FRAMES = 8  # of the user's, from the model's call outwards
MOST_NODES = 4000  # of a loop's body
FLOWS = 4  # names that are made from names that are made from …
MOST_FED = 16  # lines that make a batch
MIN_PARTS = 2  # a batch that is more than one such part of the data is no mini-batch
_SEEDING = frozenset(("manual_seed", "seed", "default_rng", "RandomState", "Random", "PCG64", "PRNGKey"))
_PICKING = frozenset(("randint", "integers", "choice", "choices", "sample", "multinomial", "randrange"))
_ORDERING = frozenset(("randperm", "permutation"))
_MAKING_UP = frozenset(("rand", "randn", "normal", "uniform", "random", "standard_normal", "gauss", "rand_like"))
_SIZES = ("size", "shape", "numel")


class Region(NamedTuple):
    """Where the batch is made: the body of a loop, or of a function that it calls."""

    file: str
    name: str
    scope: Scope
    body: list[ast.stmt]
    counted: set[str]  # names that the loop itself gives a value
    flow: list[ast.AST]  # parts of the statements that lead to what the model is given


def remade(frame: FrameType | None, rows: int) -> Remade | None:
    """What makes the batch anew in each step, and why it is always the same. `rows`: of the batch."""
    for region in _regions(frame):
        for node in region.flow:
            if isinstance(node, ast.Call):
                found = _restarted(node, region) or _reseeded(node, region, rows)
            else:
                found = _not_moved(node, region, None, node) if isinstance(node, ast.Subscript) else None
            if found is not None:
                return found
    return None


def drawing(frame: FrameType | None, rows: int) -> Remade | None:
    """What draws the batch of each step, which samples rather than values; something else may seed its generator."""
    found = []
    for region in _regions(frame):
        for call in (node for node in region.flow if isinstance(node, ast.Call)):
            known = called(call, region.scope)
            nodes: list[ast.AST] = [call] if known is None else list(parsed_source.own_nodes(known[0]))
            drawn = _drawn(nodes, region.scope, known, call, rows)
            if drawn is not None:
                found.append(_remade("reset", call, call, region, None, drawn))
    return min(found, key=lambda made: made.drawn != "samples", default=None)


def _regions(frame: FrameType | None) -> Iterator[Region]:
    """The functions of the user's from the model's call outwards."""
    for caller, statements in _bodies(frame):
        code, loop = caller.f_code, statements[0] if statements else None
        inside = isinstance(loop, parsed_source.LOOPS) and len(statements) == 1 and covers(loop, caller.f_lineno or 0)
        body = loop.body if inside else statements  # type: ignore[union-attr]
        counted = set(gives(loop)) if inside and loop is not None else set()
        flow = list(_flow(body, caller.f_lineno or 0))
        yield Region(
            user_code.absolute(code.co_filename), user_code.name_of(code), scope_of(caller), body, counted, flow
        )


def _flow(body: list[ast.stmt], line: int) -> Iterator[ast.AST]:
    """Parts of the statement at a line, and of those that give its names their values."""
    placed = [each.statement for each in beneath(body)]
    here = [each for each in placed if covers(each, line)]
    for statement in _leading_to(here[-1:], [each for each in placed if not hasattr(each, "body")]):
        yield from own_parts(statement)


def _leading_to(taken: list[ast.stmt], placed: list[ast.stmt]) -> list[ast.stmt]:
    """These statements, and those that give their names the values."""
    for _ in range(FLOWS):
        read = {node.id for statement in taken for node in own_parts(statement) if isinstance(node, ast.Name)}
        given = [each for each in placed if each not in taken and read & set(gives(each))]
        taken = taken + given
        if not given:
            break
    return taken


# --- where it is made ------------------------------------------------------------------------------------------------


def feeding(frame: FrameType | None) -> list[FedBy]:
    """Lines around a step that make its batch: they lead to the loss, or to what the step is called with, and what they
    give is not yet the model's."""
    found: list[FedBy] = []
    for caller, body in _bodies(frame):
        line, scope = caller.f_lineno or 0, scope_of(caller)
        placed = [each.statement for each in beneath(body)]
        here = [each for each in placed if not hasattr(each, "body") and covers(each, line)]
        own = [each for each in placed if isinstance(each, (ast.Expr, ast.Assign)) and ".backward(" in text(each)]
        start = here + own
        for statement in _leading_to(start, [each for each in placed if _gives_plainly(each)]):
            head = statement.iter if isinstance(statement, ast.For) else statement
            if statement not in start and _is_data(statement, scope):
                last = head.end_lineno or head.lineno
                file = user_code.absolute(caller.f_code.co_filename)
                found.append(FedBy(file=file, function=caller.f_code.co_name, first=statement.lineno, last=last))
    return found[:MOST_FED]


def _bodies(frame: FrameType | None) -> Iterator[tuple[FrameType, list[ast.stmt]]]:
    """Functions of the user's, outwards up to the first that has a loop around its line, and what is read of each."""
    seen = 0
    for caller in user_code.frames(frame):
        code, line = caller.f_code, caller.f_lineno
        if line is None or not user_code.is_user_file(code.co_filename):
            continue
        function, around = around_line(code, line)
        body: list[ast.stmt] = list(around[:1]) if around else getattr(function, "body", [])
        seen += 1
        nodes = (node for statement in body for node in ast.walk(statement))
        if seen > MOST_FRAMES or sum(1 for _ in itertools.islice(nodes, MOST_NODES + 1)) > MOST_NODES:
            return
        yield caller, body
        if around:
            return


def _gives_plainly(statement: ast.stmt) -> bool:
    """It is the head of a `for`, or has no statements within."""
    return isinstance(statement, ast.For) or not hasattr(statement, "body")


def _is_data(statement: ast.stmt, scope: Scope) -> bool:
    """What it gives has come through no layer that is trained. A `for` over a range makes nothing."""
    if isinstance(statement, ast.For) and isinstance(statement.iter, ast.Call) and text(statement.iter.func) == "range":
        return False
    values = [scope.find(parsed_source.expression(name)) for name in gives(statement)]
    known = [value for value in values if value is not UNKNOWN]
    leaves = [leaf for value in known for _, leaf in tensors.plain_tensors(value)]
    return bool(known) and not any(leaf.requires_grad for leaf in leaves)


# --- why it is always the same ---------------------------------------------------------------------------------------


def _restarted(call: ast.Call, region: Region) -> Remade | None:
    """`next(batches(data))`: a new generator each time, of which the first element is taken."""
    source = call.args[0] if text(call.func) == "next" and call.args else None
    if not isinstance(source, ast.Call):
        return None
    if text(source.func) == "iter" and len(source.args) == 1:
        through = source.args[0]
        thing = region.scope.find(through)
        count = len(through.elts) if isinstance(through, (ast.List, ast.Tuple)) else None
        count = lengths.length(thing) if thing is not UNKNOWN else count
        anew = count is not None and count > 1
    else:
        found = called(source, region.scope)
        anew = found is not None and parsed_source.is_generator(found[0]) and _yields_more(found[0])
    return _remade("restarted", call, call, region, None) if anew else None


def _yields_more(function: Function) -> bool:
    return any(
        isinstance(node, (ast.Yield, ast.YieldFrom))
        for loop in parsed_source.own_nodes(function)
        if isinstance(loop, parsed_source.LOOPS)
        for node in ast.walk(loop)
    )


def _reseeded(call: ast.Call, region: Region, rows: int) -> Remade | None:
    """A function of the user's that seeds its generator each time it is called; or the loop does it itself."""
    own = [
        each.statement.value
        for each in beneath(region.body)
        if isinstance(each.statement, ast.Expr) and not each.guards
    ]
    for node in own:
        if isinstance(node, ast.Call) and _seeds(node) and (drawn := _drawn([call], region.scope, None, call, rows)):
            return _remade("reseeded", call, node, region, None, drawn)
    found = called(call, region.scope)
    if found is None:
        return None
    nodes = list(parsed_source.own_nodes(found[0]))
    seeding = next((node for node in nodes if isinstance(node, ast.Call) and _seeds(node)), None)
    drawn = _drawn(nodes, region.scope, found, call, rows) if seeding is not None else None
    if seeding is not None and drawn is not None:
        return _remade("reseeded", call, seeding, region, found[0], drawn)
    cuts = (node for node in nodes if isinstance(node, ast.Subscript))
    return next((cut for node in cuts if (cut := _not_moved(node, region, found, call)) is not None), None)


def _seeds(call: ast.Call) -> bool:
    return bool(call.args or call.keywords) and parsed_source.called(call) in _SEEDING


def _drawn(nodes: list[ast.AST], scope: Scope, found: Called | None, call: ast.Call, rows: int) -> Drawn | None:
    """What is drawn with the generator: which samples, or their values. A whole order is drawn also for a split that
    is always the same: then the batch must be a small part of it."""
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    if any(parsed_source.called(node) in _PICKING for node in calls):
        return "samples"
    for node in calls:
        if parsed_source.called(node) in _ORDERING and node.args and is_small(node.args[0]):
            written = node.args[0] if found is None else in_callers_names(node.args[0], call, found)
            count = _whole(written, scope)
            return "samples" if count is not None and MIN_PARTS * rows <= count else None
    return "values" if any(parsed_source.called(node) in _MAKING_UP for node in calls) else None


def _not_moved(node: ast.Subscript, region: Region, found: Called | None, call: ast.AST) -> Remade | None:
    """`data[start : start + size]` with a start that nothing in the loop moves, and with more data behind it."""
    written: ast.expr = node
    if found is not None and isinstance(call, ast.Call) and is_small(node):
        written = in_callers_names(node, call, found)
    part = written.slice if isinstance(written, ast.Subscript) else None
    if isinstance(part, ast.Tuple):
        part = part.elts[0]
    if not isinstance(written, ast.Subscript) or not isinstance(part, ast.Slice) or part.upper is None:
        return None
    start = part.lower
    if not isinstance(start, (ast.Name, ast.Attribute)) or text(start) not in parsed_source.names(part.upper):
        return None
    data = region.scope.find(written.value)
    first, last = region.scope.find(start), region.scope.find(part.upper)
    count = None if data is UNKNOWN else lengths.length(data)
    if count is None or type(first) is not int or type(last) is not int or MIN_PARTS * (last - first) > count:
        return None
    if _is_moved(text(start), region):
        return None
    return _remade("not moved", call, node, region, None if found is None else found[0])


def _is_moved(name: str, region: Region) -> bool:
    """Something gives it another value: in the loop, or, of an attribute, in another function of the file."""
    given = {each for placed in beneath(region.body) for each in gives(placed.statement)}
    tree = parsed_source.tree_of(region.file)
    if name in given | region.counted or tree is None:
        return True
    part = name if name.isidentifier() else "." + name.rpartition(".")[2]
    return any(function.name not in MAKING for function, _ in stores(tree).get(part, ()))


# --- small readings --------------------------------------------------------------------------------------------------


def _whole(node: ast.expr, scope: Scope) -> int | None:
    """A count: a number, or the length of something that is known."""
    if isinstance(node, ast.Call) and text(node.func) == "len" and len(node.args) == 1:
        thing = scope.find(node.args[0])
        return None if thing is UNKNOWN else lengths.length(thing)
    base = node.func if isinstance(node, ast.Call) else node.value if isinstance(node, ast.Subscript) else node
    if isinstance(base, ast.Attribute) and base.attr in _SIZES:
        thing = scope.find(base.value)
        return None if thing is UNKNOWN else lengths.length(thing)
    value = scope.find(node)
    return value if type(value) is int else None


def _remade(
    how: str, call: ast.AST, node: ast.AST, region: Region, function: Function | None, drawn: Drawn = "samples"
) -> Remade:
    line = getattr(node, "lineno", 0)
    name = region.name if function is None else function.name
    site: Site = (region.file, line, name)
    return Remade(how=how, call=text(call)[:120], text=text(node)[:120], site=site, drawn=drawn)  # type: ignore[arg-type]
