"""What belongs together was torn apart by an operation on arrays that keeps their sizes right: in words, by the way it
was seen."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from unstuck.model import Case
from unstuck.recorder.records.learning import Learning, LossHead, Torn
from unstuck.rules.training import (
    MIN_VALUES_ENDED,
    MIN_VALUES_RUNNING,
    first_value,
    has_learned,
    line,
    main_loss,
    now,
    number,
    share_of_constant,
    stuck_at_constant,
    where,
)

MIN_SHARE = 0.85  # of the loss of a constant prediction: memorizing gains some per cent


def torn_apart(case: Case) -> Iterator[tuple[Learning, dict[str, Any]]]:
    """Each with what makes a finding of it."""
    stuck = {learning.pid: head for learning, head, *_ in stuck_at_constant(case)}
    for learning in case.learnings:
        seen = [each.torn for each in case.data if each.pid == learning.pid][-1:]
        for torn in (learning.torn, *seen):
            if torn is not None and torn.site is not None and _counts(case, learning, torn, stuck.get(learning.pid)):
                yield learning, _WORDS[torn.how](learning, torn)
                break


def _counts(case: Case, learning: Learning, torn: Torn, stuck: LossHead | None) -> bool:
    """What memory or the numbers prove; else only where the training learns next to nothing."""
    if torn.how == "mixed":
        return stuck is not None and _moves_samples(torn, stuck.shape or stuck.target.shape)
    if torn.how in ("view", "backwards") or len(torn.shape) > 2 or stuck is not None:
        return True
    loss = main_loss(learning)
    enough = MIN_VALUES_ENDED if case.outcome != "running" else MIN_VALUES_RUNNING
    if loss is None or loss.count < enough:
        return False
    share = share_of_constant(learning, loss)
    return share > MIN_SHARE if share is not None else first_value(loss) > 0 and not has_learned(learning, loss)


def _moves_samples(torn: Torn, rows: list[int]) -> bool:
    """The axis of the samples is one of those exchanged; what attention does to distances within one is not meant."""
    moved = [one for one, other in zip(torn.before, torn.shape, strict=True) if one != other]
    return bool(rows) and (rows[0] in moved or rows[0] == prod(moved))


def _reshaped(learning: Learning, torn: Torn) -> dict[str, Any]:
    before, shape = _sizes(torn.before), _sizes(torn.shape)
    memory = f"the numbers of an array of {before} are used as one of {shape}, in the order they had"
    if torn.how == "reshaped":
        memory = f"an array of {shape} that the training holds reads like one of {before}"
    loss = main_loss(learning)
    learns = len(torn.shape) > 2 and loss is not None and has_learned(learning, loss)  # pictures, by what is left
    return {
        "severity": "warning" if learns else "error",
        "confidence": 0.95 if torn.how == "view" else 0.9,
        "title": f"An array is torn apart: {line(torn.site)} makes {shape} of {before} without exchanging the axes",
        "evidence": (
            memory,
            f"neighbours in {shape} say {number(torn.own)} nats about each other, those in {before} "
            f"{number(torn.other)} (in {torn.pairs:,} numbers)",
            _outcome(learning),
        ),
        "where": where(learning, torn.site),
        "fix": "Give it the shape in which it lies in memory, then exchange the axes: "
        f"{_exchange(torn)}. `reshape` and `view` leave every number in its place.",
    }


def _exchange(torn: Torn) -> str:
    if len(torn.shape) != 2:
        return f"`x.reshape({', '.join(map(str, [-1, *torn.before[1:]]))})`, then `permute` (in numpy `transpose`)"
    return f"`x.reshape({torn.before[0]}, {torn.before[1]}).T`"


def _lanes(learning: Learning, torn: Torn) -> dict[str, Any]:
    return {
        "severity": "error",
        "confidence": 0.9,
        "title": "Sequences are cut across: each goes on in its neighbour in the batch, not in itself",
        "evidence": (
            f"what comes next in a sequence has {number(torn.own)} nats in common with what came before it, and "
            f"{number(torn.other)} with its neighbour in the batch (in {torn.pairs:,} pairs)",
            "the last one of the batch goes on in the first, one step later: the stream lies across the sequences",
            _outcome(learning),
        ),
        "where": where(learning, torn.site),
        "fix": "Cut the stream into pieces that follow each other, then exchange the axes: "
        f"`stream.view({torn.shape[-1]}, -1).t()`. `view` leaves every number in its place.",
    }


def _mixed(learning: Learning, torn: Torn) -> dict[str, Any]:
    before, shape = _sizes(torn.before), _sizes(torn.shape)
    return {
        "severity": "error",
        "confidence": 0.9,
        "title": f"Samples of a batch are mixed: {line(torn.site)} views {before} as {shape}",
        "evidence": (
            f"in the model, {before} becomes {shape} by a view: every number stays in its place, and rows "
            "get parts of several samples",
            _outcome(learning),
        ),
        "where": where(learning, torn.site),
        "fix": "Exchange the axes with `transpose` or `permute`; `view` and `reshape` only read the same numbers with "
        "other sizes.",
    }


def _backwards(learning: Learning, torn: Torn) -> dict[str, Any]:
    return {
        "severity": "error",
        "confidence": 0.95,
        "title": f"Returns are paired with the wrong steps: {line(torn.site)} appends them from the last step on",
        "evidence": (
            "the returns that the training holds at its backward pass are, in this order, those of its rewards from "
            "the last to the first",
            "nothing in the file turns them round: the first action gets the return of the last",
        ),
        "where": where(learning, torn.site),
        "fix": "Turn them round before they are used: `returns.reverse()`, or `torch.stack(returns[::-1])`.",
    }


def _sizes(shape: list[int]) -> str:
    """Of an array; of many dimensions, those of one sample."""
    return f"({', '.join(map(str, shape if len(shape) < 4 else shape[1:]))})"


def _outcome(learning: Learning) -> str:
    loss = main_loss(learning)
    share = share_of_constant(learning, loss) if loss is not None else None
    return "" if share is None or share < MIN_SHARE else f"a constant prediction is about as good{now(loss)}"


_WORDS = {"view": _reshaped, "reshaped": _reshaped, "lanes": _lanes, "mixed": _mixed, "backwards": _backwards}
