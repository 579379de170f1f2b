"""graph-cut: layers that are used in every step but never get a gradient.

What it sees
    Parameters of an optimizer that require gradients but never get one: their layers are called in every step, and then
    the result goes on without its graph. A `detach()`, `.data`, `.item()`, a new tensor made of the values, `no_grad`
    around the call, a choice such as `argmax` or `sign`, or a loss that was itself made a leaf. The same where the
    script writes its updates out, of layers that it keeps in one list with those that learn. Or a whole optimizer
    steps, and none of its parameters ever had a gradient, however that came about. Or numbers that learn go into a
    random draw (`torch.normal(mean, std)`), which lets no gradient through, though other parts of the loss reach them.
    Or a recurrent layer's state loses its graph before every call, so that only the last one of a sequence learns. Or
    one term of the loss has no graph: a penalty or residual made of `autograd.grad` without `create_graph=True`, or of
    `p.data`; only the other terms train. Or the result of an operation on a layer's output is dropped (`h.index_add(…)`
    by itself, where `index_add_` was meant), or that output itself. Or a term of the loss has a graph in which every
    gradient dies: `min` only picks the zeros that a mask has written, or all lies beyond the limit of a `clamp`, on the
    side that the loss pulls it away from.

Why it matters
    Everything before the cut keeps its initial weights. Where the loss itself is cut off, nothing trains at all.

Evidence
    Which parameters had no gradient in how many steps, between which two modules the graph ends, that the values on
    both sides are the same, and the line in between.

Fix
    Pass the result on as it is; detach only copies that are kept or logged.

When it is wrong
    Parts that are frozen on purpose by detaching them, though the optimizer has them: where they hold trained weights
    or are in eval mode they are not reported, nor, where updates are written out, those that no list of the script has
    together with what learns. Nor are layers that are not called (idle experts, branches not taken), or whose result
    has a name and is not used. A term without a graph is reported only where the source says what made it so: one that
    is cut off on purpose (`.detach()`, `.item()`, `no_grad`) is not. Nor is a hinge that is satisfied, a ratio clipped
    as PPO does, or a term that lets a gradient through in one of the steps looked at.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.recorder.records.learning import FlatOperation, GraphCut, Learning, Parameter, TermEnd
from unstuck.rules.rule import Rule
from unstuck.rules.training import counted, layer_names, layer_of, line, loss_site, random_matrices, where
from unstuck.text import count

MIN_STEPS = 5  # observed, all without a gradient
MIN_STEPS_IN_VAIN = 20  # that an optimizer made, without moving anything
MIN_TIMES_DROPPED = 2  # steps that were looked at closely
MIN_LOOKS: dict[TermEnd, int] = {"written": 7, "zero": 7, "limit": 9}
"""At a term whose gradient died each time: until the 22nd step at least, where a limit did it, until the 49th."""
MANY_STEPS_IN_VAIN = 100  # after so many a single one that was observed is enough: steps of large graphs are seldom
CALLS = {"detach": "`detach()`", "data": "`.data`", "no_grad": "`no_grad`", "item": "`.item()`"}
LEAVES_TORCH = ("tolist", "numpy", "__array__", "item")
STAND_INS = {
    "normal": "Draw the noise apart from the numbers that learn: `mean + std * torch.randn_like(std)`.",
    "bernoulli": "Train on a smooth stand-in (a relaxed Bernoulli, `torch.distributions.RelaxedBernoulli`), let the "
    "gradient pass straight through (`p + (torch.bernoulli(p) - p).detach()`), or use its log-probability in the loss.",
    "poisson": "Use the rate itself, or the log-probability of what was drawn, in the loss.",
}
"""For what is drawn at random."""
TERMS = {  # what takes the graph from a term of the loss, and what to do instead
    "autograd.grad": (
        "takes a derivative without `create_graph=True`, and what it gives has no graph",
        "Pass `create_graph=True` to `autograd.grad`, so that the loss can be differentiated through the derivative.",
    ),
    "data": (
        "makes it of the weights' values without their graph ({})",
        "Compute it from the parameters themselves, without {}.",
    ),
}
ENDS: dict[TermEnd, tuple[str, str, str]] = {  # why the gradient of a term dies: title, evidence, fix
    "written": (
        "{choice} only picks what it has written there",
        "{choice} chooses among its results, and each one chosen is a number that {operation} put there, not one that "
        "the model computed",
        "Put there what can never be chosen: `float('inf')` before a `min`, `float('-inf')` before a `max` or a "
        "softmax (a product with a mask leaves zeros, which are chosen like all others).",
    ),
    "zero": (
        "{choice} only picks zeros, where it has no slope",
        "{choice} chooses among its results, and each one chosen is 0: the distance of something to itself, for one",
        "Leave out the diagonal before {choice}: `d.masked_fill(torch.eye(len(d), dtype=torch.bool), float('inf'))`.",
    ),
    "limit": (
        "all it gets lies beyond its limit, and the loss wants it back",
        "beyond its limit the slope of {operation} is 0, and the loss would fall if the values came back",
        "Move the limit to where the values are, use a form with a slope on both sides (`softplus`, `leaky_relu`, "
        "`tanh`), or check the sign of the term.",
    ),
}
THE_LOSS = "the loss"
NO_GRAPH = ("no_grad", "inference_mode", "set_grad_enabled")


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        yield from _zero_slope(learning)
        yield from _state(learning)
        yield from _term(learning)
        yield from _dead_term(learning)
        if learning.cut is not None and learning.cut.dropped:
            yield from _dropped(learning, learning.cut)
            continue
        if learning.cut is not None and learning.cut.by_hand and not learning.compiled:
            yield from _by_hand(learning, learning.cut)
        cut, cut_off = learning.cut, [p for p in learning.parameters if _cut_off(p, learning)]
        if not cut_off:
            continue
        between = list(_between_modules(learning, cut, cut_off)) if cut is not None and not learning.compiled else []
        if learning.leaf_losses >= MIN_STEPS and not any(parameter.in_graph for parameter in learning.parameters):
            yield _leaf_loss(learning, cut, cut_off)
        elif between and cut is not None and cut.site is not None:
            yield from between
        else:
            yield from list(_in_vain(learning, cut, cut_off)) or between


def _cut_off(parameter: Parameter, learning: Learning) -> bool:
    if parameter.held is None or not parameter.trainable or parameter.moved or parameter.in_graph:
        return False
    in_vain = any(o.number == parameter.held and o.steps >= MANY_STEPS_IN_VAIN for o in learning.built)
    return parameter.seen >= (1 if in_vain else MIN_STEPS) and parameter.none == parameter.seen


def _zero_slope(learning: Learning) -> Iterable[Finding]:
    """An operation whose slope is 0 everywhere: there is a graph, and no gradient comes through it."""
    flat = learning.flat
    behind = [parameter for parameter in learning.parameters if flat is not None and parameter.name in flat.lost]
    if flat is None or flat.over_one_element or not behind or not all(p.seen >= MIN_STEPS for p in behind):
        return
    if flat.other_ways:
        yield _drawn(learning, flat, behind)
        return
    if not all(p.zero == p.seen for p in behind):
        return
    operation = flat.operation
    fix = STAND_INS.get(
        operation,
        f"Let the gradient pass straight through: `x + (torch.{operation}(x) - x).detach()`, or train on a smooth "
        "stand-in (tanh, sigmoid).",
    )
    yield RULE.finding(
        severity="error",
        confidence=0.96,
        title=f"No gradient comes through `{operation}`: {layer_names(behind)} cannot learn",
        evidence=(
            f"the gradient of {counted(behind)} of {layer_names(behind)} was all zeros in each of "
            f"{max(parameter.seen for parameter in behind)} steps observed",
            f"the loss reaches them only through `{operation}`, whose slope is 0 everywhere",
        ),
        where=where(learning, flat.site or loss_site(learning)),
        fix=fix,
    )


def _drawn(learning: Learning, flat: FlatOperation, behind: list[Parameter]) -> Finding:
    """Its result goes on into the loss as if it were a constant; another part of the loss reaches what is behind."""
    operation = flat.operation
    return RULE.finding(
        severity="error",
        confidence=0.93,
        title=f"No gradient comes through `torch.{operation}`: {layer_names(behind)} learn nothing from what follows",
        evidence=(
            f"the graph of the loss has a `torch.{operation}` in it: it draws at random, and the gradient that it "
            "passes on is always 0",
            f"behind it are {counted(behind)} of {layer_names(behind)}; other parts of the loss still reach them, so "
            "their gradients are not 0",
        ),
        where=where(learning, flat.site or loss_site(learning)),
        fix=STAND_INS[operation],
    )


def _state(learning: Learning) -> Iterable[Finding]:
    """A recurrent layer whose state is handed on without its graph."""
    cut = learning.state_cut
    if cut is None:
        return
    by = f" by {_call(cut.op)}" if cut.op else ""
    yield RULE.finding(
        severity="warning",
        confidence=0.9,
        title=f"Of {cut.calls:,} calls of `{cut.layer}` in a step only the last one learns: its state is cut off{by} "
        "before each",
        evidence=(
            f"in one step `{cut.layer}` was called {cut.calls:,} times; the graph of the loss has its last call only",
            f"each call got what came of the call before, the same values without a graph{by}",
        ),
        where=where(learning, cut.site or loss_site(learning)),
        fix=f"Keep the graph of the state within a sequence: remove {_call(cut.op) if cut.op else 'what cuts it'} at "
        f"{line(cut.site or loss_site(learning))}, and detach the state once, between two calls of `backward`.",
    )


def _dropped(learning: Learning, cut: GraphCut) -> Iterable[Finding]:
    """What a layer computes is used for nothing: the call that would do so stands by itself."""
    if cut.times < MIN_TIMES_DROPPED:
        return
    what = f"the result of `{cut.op}`" if cut.op else f"the output of `{cut.begins}`"
    lost = ", ".join(f"`{name}`" for name in cut.lost[:3]) + (" …" if len(cut.lost) > 3 else "")
    yield RULE.finding(
        severity="error",
        confidence=0.93,
        title=f"{what[0].upper()}{what[1:]} is dropped at {line(cut.site)}: {lost} cannot learn",
        evidence=(
            f"{count(cut.parameters, 'parameter')} of {lost} are used in every step observed, and no loss reaches them",
            f"{line(cut.site)} makes {what} and gives it to nobody"
            + (f"; `{cut.op}` returns a new tensor and leaves the old one as it was" if cut.op else ""),
        ),
        where=where(learning, cut.site),
        fix=f"Use the result (`x = x.{cut.op}(…)`), or write in place: `x.{cut.op}_(…)`."
        if cut.op
        else "Give the output a name and use it in what follows, or remove the layer.",
    )


def _term(learning: Learning) -> Iterable[Finding]:
    """A term of the loss that is computed from the model, and cannot change it."""
    cut = learning.term_cut
    if cut is None or cut.seen < MIN_STEPS:
        return
    by, fix = TERMS["data" if cut.op != "autograd.grad" else cut.op]
    yield RULE.finding(
        severity="error",
        confidence=0.93,
        title=f"The term `{cut.term}` of the loss has no gradient: {line(cut.site)} {by.format(_call(cut.op))}",
        evidence=(
            f"in each of {cut.seen} losses looked at, `{cut.term}`, added at {line(cut.loss)}, leads to no parameter: "
            "the model learns from the other terms only",
            f"{line(cut.site)} {by.format(_call(cut.op))}",
        ),
        where=where(learning, cut.site),
        fix=fix.format(_call(cut.op)),
    )


def _dead_term(learning: Learning) -> Iterable[Finding]:
    """A term of the loss that has a graph, and in it an operation that stops every gradient."""
    dead = learning.dead_term
    if dead is None or dead.seen < MIN_LOOKS[dead.kind]:
        return
    operation, choice = f"`{dead.operation}`", f"`{dead.choice}`"
    what, why, fix = (text.format(operation=operation, choice=choice) for text in ENDS[dead.kind])
    yield RULE.finding(
        severity="warning" if dead.kind == "limit" else "error",
        confidence=0.85 if dead.kind == "limit" else 0.93,
        title=f"No gradient comes through {operation}{f' ({line(dead.site)})' if dead.site else ''}: {what}",
        evidence=(
            f"in each of {dead.seen} backward passes looked at, a gradient arrived at {operation} and left it as all "
            "zeros: this term of the loss teaches the model nothing",
            why,
        ),
        where=where(learning, dead.site or loss_site(learning)),
        fix=fix,
    )


def _leaf_loss(learning: Learning, cut: GraphCut | None, cut_off: list[Parameter]) -> Finding:
    site = (cut.site if cut is not None else None) or loss_site(learning)
    by = f" ({_call(cut.op)} at {line(site)})" if cut is not None and cut.op else ""
    return RULE.finding(
        severity="error",
        confidence=0.96,
        title="The loss has no graph: backward reaches no parameter at all",
        evidence=(
            f"in {learning.leaf_losses} backward passes the loss was a leaf tensor (`requires_grad_()` was called on "
            f"it), so backward reaches no parameter{by}",
            f"none of {counted(cut_off)} got a gradient in {max(p.seen for p in cut_off)} steps observed",
        ),
        where=where(learning, site),
        fix="Compute the loss from the model's output itself, without detaching it or making a new tensor of it; "
        "`requires_grad_()` on the loss only silences the error.",
    )


def _between_modules(learning: Learning, cut: GraphCut, cut_off: list[Parameter]) -> Iterable[Finding]:
    called = [p for p in cut_off if p.called and any(_is_in(p, module) for module in cut.lost)]
    matrices = random_matrices(called)
    pretrained = bool(matrices) and not any(matrix.fresh for matrix in matrices)  # frozen on purpose
    if called and cut.training and cut.proven and not pretrained:
        got_none = f"got no gradient in {max(parameter.seen for parameter in called)} steps observed"
        yield _cut(learning, cut, f"{counted(called)} of {layer_names(called)} are used in every step and {got_none}")


def _by_hand(learning: Learning, cut: GraphCut) -> Iterable[Finding]:
    """The script writes its updates out: what they are for is seen from the list that it keeps its weights in."""
    if cut.training:
        layers = ", ".join(f"`{name}`" for name in cut.lost[:3]) + (" …" if len(cut.lost) > 3 else "")
        yield _cut(
            learning,
            cut,
            f"{count(cut.parameters, 'parameter')} of {layers} are used in every step, no loss reached them in "
            f"{cut.by_hand} steps observed, and they still have their first weights; the script keeps them together "
            "with those that learn",
        )


def _cut(learning: Learning, cut: GraphCut, lost: str) -> Finding:
    certain = cut.proven > 1
    return RULE.finding(
        severity="error" if certain else "warning",
        confidence=0.95 if certain else 0.75,
        title=_title(cut),
        evidence=(lost, _where_it_ends(cut)),
        where=where(learning, cut.site),
        fix=_fix(cut),
    )


def _in_vain(learning: Learning, cut: GraphCut | None, cut_off: list[Parameter]) -> Iterable[Finding]:
    """Optimizers that step and step, and none of their parameters ever had a gradient or moved."""
    reached = [parameter for parameter in learning.parameters if parameter.in_graph]
    if any(parameter.is_parameter and parameter.held is None for parameter in reached):
        return  # another model than the optimizer's is trained: parameters-not-in-optimizer
    for optimizer in learning.built:
        own = [parameter for parameter in cut_off if parameter.held == optimizer.number]
        if optimizer.steps < MIN_STEPS_IN_VAIN or optimizer.moved or optimizer.in_graph or not own:
            continue
        if any(p.held == optimizer.number and p.trainable for p in learning.parameters if p not in own):
            continue
        lost = cut is not None and any(_is_in(parameter, module) for parameter in own for module in cut.lost)
        begins = f" after `{cut.begins}`" if cut is not None and lost else ""
        site = cut.site if cut is not None and lost else None
        anew = " in new tensors that require a gradient, made for each loss" if learning.passing else ""
        leaf = next((parameter for parameter in reached if not parameter.is_parameter), None)
        yield RULE.finding(
            severity="error",
            confidence=0.93,
            title=f"None of the {optimizer.kind}'s parameters ever gets a gradient: {layer_names(own)} cannot learn",
            evidence=(
                f"{counted(own)} of {layer_names(own)} had no gradient in any of "
                f"{count(max(p.seen for p in own), 'step')} observed, and did not move in {optimizer.steps:,} "
                f"steps ({optimizer.kind}, {line(optimizer.site)})",
                f"the graph of the loss ends in a new tensor of shape {list(leaf.shape)} that requires a gradient and "
                "is no parameter"
                if leaf is not None and all(not parameter.is_parameter for parameter in reached)
                else f"no loss reaches them: the graph ends{(begins if site is not None else '') or anew or begins}",
            ),
            where=where(learning, site or (loss_site(learning) if len(learning.built) == 1 else optimizer.site)),
            fix="Compute the loss of this optimizer from the output of these layers itself, without `detach()`, numpy "
            "or a new tensor made of its values in between; detach it only where another part is updated.",
        )


def _is_in(parameter: Parameter, module: str) -> bool:
    return layer_of(parameter) == module or parameter.name.startswith(f"{module}.")


def _title(cut: GraphCut) -> str:
    if cut.site is None:
        return f"No gradient reaches `{cut.begins}`"
    by = f" by {_call(cut.op)}" if cut.op else ""
    end = f"`{cut.ends}`" if cut.ends and cut.ends != THE_LOSS else THE_LOSS
    return f"The graph is cut{by} between `{cut.begins}` and {end}"


def _where_it_ends(cut: GraphCut) -> str:
    if cut.op in NO_GRAPH:
        return f"`{cut.begins}` is called while no graph is recorded ({cut.op})"
    if cut.ends and cut.op in LEAVES_TORCH:
        return (
            f"the output of `{cut.begins}` has a graph; it leaves torch by {_call(cut.op)}, and `{cut.ends}` gets "
            "values without one"
        )
    if cut.ends and cut.proven > 1:
        by = f" ({_call(cut.op)})" if cut.op else ""
        return f"the output of `{cut.begins}` has a graph; `{cut.ends}` gets the same values without one{by}"
    if cut.ends == THE_LOSS:
        return f"the output of `{cut.begins}` has a graph; the loss is made of its values, and reaches no matrix at all"
    if cut.ends:
        return f"the output of `{cut.begins}` has a graph, the input of `{cut.ends}` after it has none"
    return ""


def _fix(cut: GraphCut) -> str:
    if cut.op in NO_GRAPH:
        return f"Call `{cut.begins}` outside of {cut.op} ({line(cut.site)}) if it should train."
    by = _call(cut.op) if cut.op else "the call that cuts it"
    return (
        f"Remove {by} at {line(cut.site)}, so that the result keeps its graph; if this part should stay as it is, "
        "freeze it with `requires_grad_(False)`."
    )


def _call(op: str) -> str:
    return CALLS.get(op, f"`{op}`")


RULE = Rule(
    "graph-cut",
    "learning",
    decide,
    explains=frozenset(("vanishing-gradient", "learning-rate-too-low")),
    gathers=True,
)
