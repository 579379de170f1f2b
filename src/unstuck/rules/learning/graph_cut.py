"""graph-cut: layers that are computed with, and that no gradient ever comes back to.

What it sees
    Parameters that the optimizer has and that want gradients, but never get one: their layers are called in every step,
    and then the result goes on without its graph. A `detach()`, `.data`, `.item()`, a new tensor made of the values,
    `no_grad` around the call, a choice such as `argmax` or `sign`, or a loss that was itself made a leaf.

Why it matters
    It goes on, but everything before the cut keeps the weights it began with. Where the loss itself is cut off, nothing
    is trained at all.

Evidence
    Which parameters have had no gradient in how many steps, between which two modules the graph ends, that the values
    on both sides are the same, and the line in between.

Fix
    Hand the result on as it is; detach only copies that are kept or logged.

When it is wrong
    Parts that are frozen on purpose by detaching them, though the optimizer has them: where they hold trained weights
    or stand in eval mode nothing is said. Layers that are not called (idle experts, branches not taken), or whose
    result is not used, are not reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import GraphCut, Learning, Parameter
from unstuck.rules.learning.measured import layer_of, loss_site, where
from unstuck.rules.learning.ownership import count, layers, line, trained_before
from unstuck.rules.rule import Rule

ENOUGH = 5
"""Steps looked at, all without a gradient."""
WRITTEN = {"detach": "`detach()`", "data": "`.data`", "no_grad": "`no_grad`", "item": "`.item()`"}
NO_GRAPH = ("no_grad", "inference_mode", "set_grad_enabled")


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        yield from _flat(learning)
        cut = learning.cut
        lost = [each for each in learning.parameters if _lost(each)]
        if not lost:
            continue
        if learning.leaf_losses >= ENOUGH and not any(each.in_graph for each in learning.parameters):
            yield _nothing_left(learning, cut, lost)
        elif cut is not None and not learning.compiled:
            yield from _part(learning, cut, lost)


def _flat(learning: Learning) -> Iterable[Finding]:
    """An operation whose slope is 0 everywhere: there is a graph, and nothing comes through it."""
    flat = learning.flat
    behind = [each for each in learning.parameters if flat is not None and each.name in flat.lost]
    if flat is None or not behind or not all(each.seen >= ENOUGH and each.zero == each.seen for each in behind):
        return
    operation = flat.operation
    yield RULE.finding(
        severity="error",
        confidence=0.96,
        title=f"no gradient comes through `{operation}`: {layers(behind)} cannot learn",
        evidence=(
            f"{count(behind)} of {layers(behind)} have had a gradient of nothing but zeros in "
            f"{max(each.seen for each in behind)} of as many steps looked at",
            f"the loss reaches them only through `{operation}`, whose slope is 0 everywhere",
        ),
        where=where(learning, flat.site or loss_site(learning)),
        fix=Fix(
            f"Let the gradient pass straight through: `x + (torch.{operation}(x) - x).detach()`, or train on a smooth "
            "stand-in (tanh, sigmoid)."
        ),
        seen_by="flight",
    )


def _lost(each: Parameter) -> bool:
    if each.held is None or not each.trainable or each.moved or each.in_graph:
        return False
    return each.seen >= ENOUGH and each.none == each.seen


def _part(learning: Learning, cut: GraphCut, lost: list[Parameter]) -> Iterable[Finding]:
    called = [each for each in lost if each.called and any(_in(each, name) for name in cut.lost)]
    if not called or not cut.training or not cut.proven or trained_before(called):
        return
    yield RULE.finding(
        severity="error" if cut.proven > 1 else "warning",
        confidence=0.95 if cut.proven > 1 else 0.75,
        title=_title(cut),
        evidence=(
            f"{count(called)} of {layers(called)} are called in every step and have had no gradient in "
            f"{max(each.seen for each in called)} of as many steps looked at",
            *_between(cut),
        ),
        where=where(learning, cut.site),
        fix=Fix(_fix(cut)),
        seen_by="flight",
    )


def _in(each: Parameter, layer: str) -> bool:
    return layer_of(each) == layer or each.name.startswith(f"{layer}.")


def _between(cut: GraphCut) -> list[str]:
    if cut.op in NO_GRAPH:
        return [f"`{cut.begins}` is called while no graph is recorded ({cut.op})"]
    if cut.ends and cut.proven > 1:
        return [
            f"the result of `{cut.begins}` has a graph; `{cut.ends}` is given the same values without one"
            + (f" ({_word(cut.op)})" if cut.op else "")
        ]
    if cut.ends:
        return [f"the result of `{cut.begins}` has a graph, the input of `{cut.ends}` after it has none"]
    return []


def _title(cut: GraphCut) -> str:
    if cut.site is None:
        return f"no gradient reaches `{cut.begins}`"
    by = f" by {_word(cut.op)}" if cut.op else ""
    return f"the graph is cut{by} between `{cut.begins}` and `{cut.ends or 'the loss'}`"


def _fix(cut: GraphCut) -> str:
    if cut.op in NO_GRAPH:
        return f"Call `{cut.begins}` outside of {cut.op} ({line(cut.site)}) where it is to be trained."
    by = _word(cut.op) if cut.op else "what is done"
    return (
        f"Take {by} out at {line(cut.site)}, so that the result goes on with its graph; if the part is to stay as it "
        "is, say so with `requires_grad_(False)`."
    )


def _word(op: str) -> str:
    return WRITTEN.get(op, f"`{op}`")


def _nothing_left(learning: Learning, cut: GraphCut | None, lost: list[Parameter]) -> Finding:
    site = (cut.site if cut is not None else None) or loss_site(learning)
    by = f" ({_word(cut.op)} at {line(site)})" if cut is not None and cut.op else ""
    return RULE.finding(
        severity="error",
        confidence=0.96,
        title="the loss has no graph: backward reaches no parameter at all",
        evidence=(
            f"in {learning.leaf_losses} backward passes the loss was a leaf that was told to want a "
            f"gradient; nothing leads from it to the model{by}",
            f"none of {count(lost)} has had a gradient in {max(each.seen for each in lost)} steps looked at",
        ),
        where=where(learning, site),
        fix=Fix(
            "Compute the loss from the model's output itself, without detaching it or making a new tensor of it; "
            "`requires_grad_()` on the loss only silences the error."
        ),
        seen_by="flight",
    )


RULE = Rule(
    "graph-cut",
    "learning",
    decide,
    explains=frozenset(("no-better-than-constant", "vanishing-gradient", "learning-rate-too-low")),
    gathers=True,
)
