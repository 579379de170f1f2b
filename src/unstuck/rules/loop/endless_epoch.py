"""endless-epoch: one pass over the data never ends.

What it sees
    A single pass has given several times as many batches as the loader says a pass has; or a stream without a length
    gives the same samples again and again, and its code shows no end; or a plain `for` goes over a data set by its
    `__getitem__`, which never raises IndexError. And nothing in the loop that draws from it can end the drawing.

Why it matters
    The first epoch never ends, so what comes after it (validation, the checkpoint, the next epoch) never happens.

Evidence
    Batches given in this pass against the loader's own length, for how long, and the loop that takes them, read from
    the running script.

Fix
    Let the sampler or the data set end: yield as many samples as its length says.

When it is wrong
    A stream may give its samples several times a pass on purpose: without an endless loop in its code it must have done
    so fifty times. An endless stream is fine where the loop around it counts its steps and leaves: then nothing is
    said. A length that is only an estimate is passed by, but not three times.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix, Where
from unstuck.recorder.records.loaders import LoaderState, OverLength, Repeats
from unstuck.recorder.records.loops import DescribedLoop
from unstuck.rules.loader_reports import LoaderReport, latest
from unstuck.rules.loop.loaders import nobody_leaves
from unstuck.rules.loop.rounds import Loop, moments
from unstuck.rules.rule import Rule
from unstuck.rules.words import seconds

TIMES = 3
"""A pass this many times as long as the loader says is no estimate that went wrong."""
REPEATED = 64
"""Samples seen again in a stream without a length,"""
ROUNDS = 50
"""and how many times, where its code does not show that it has no end."""


def decide(case: Case) -> Iterable[Finding]:
    if case.outcome in ("finished", "died"):
        return
    for over in latest(case, case.over_length):
        length = over.state.length
        if length and over.state.batches >= TIMES * length and _current(case, over.state):
            loop = nobody_leaves(case, over.state)
            if loop is not None:
                yield _over(over, length, loop)
    for again in latest(case, case.repeats):
        state = again.state
        if state.length is None and state.own >= REPEATED and _goes_on(state) and _current(case, state):
            loop = nobody_leaves(case, state)
            if loop is not None:
                yield _again(again, loop)
    yield from _by_index(case)


def _goes_on(state: Repeats) -> bool:
    """Samples may be given several times on purpose: its code has no end, or they come so often that no number of
    times can be meant."""
    distinct = max(1, state.rows - state.own - state.other)
    return state.endless or state.own >= ROUNDS * distinct


def _current(case: Case, state: LoaderState) -> bool:
    """The pass it was written in is still going on: no later record of this loader tells of its end."""
    ended: tuple[LoaderState, ...] = (*case.passes_ended, *case.empty_passes)
    same = (state.pid, state.number)
    return not any((each.pid, each.number) == same and each.at > state.at for each in ended)


def _over(about: LoaderReport[OverLength], length: int, loop: Loop) -> Finding:
    state, settings = about.state, about.settings
    sampler = settings.sampler_site or settings.dataset_site
    what = sampler[2].rpartition(".")[0] or sampler[2] if sampler else "the sampler"
    return _finding(
        about.where(settings.sampler_site, settings.dataset_site),
        f"the epoch never ends: {what} goes on after the {length:,} batches that the loader says it has",
        (
            f"this pass has given {state.batches:,} batches in {seconds(state.seconds)}; the loader's own length "
            f"is {length:,}",
            f"they go into `{loop.text}` (line {loop.line}), and nothing in it leaves the loop",
        ),
        f"Let {what}.__iter__ return after one pass, or leave the loop at line {loop.line} after {length:,} batches.",
        also=loop.where(),
    )


def _again(about: LoaderReport[Repeats], loop: Loop) -> Finding:
    state, dataset = about.state, about.dataset
    return _finding(
        about.where(about.settings.dataset_site, about.settings.sampler_site),
        f"the epoch never ends: {dataset} starts over instead of ending",
        (
            f"this pass has given {state.batches:,} batches in {seconds(state.seconds)}, and {state.own:,} of "
            f"{state.rows:,} samples looked at had been given before in the same pass",
            f"they go into `{loop.text}` (line {loop.line}), and nothing in it leaves the loop",
        ),
        f"Let {dataset}.__iter__ end after one pass, or count the steps and leave the loop at line {loop.line}.",
        also=loop.where(),
    )


def _by_index(case: Case) -> Iterable[Finding]:
    for moment in moments(case):
        for place, loop in enumerate(moment.loops):
            thing = loop.described.iterates
            if not thing.by_index or not thing.length or loop.exits:
                continue
            counters = [n for each in loop.described.targets if isinstance(n := each.value.number, int)]
            same = loop.earlier and [_targets(each.described) for each in moment.loops[:place]] == _outside(loop, place)
            turns = max([*counters, loop.steps_since if same else 0])
            if turns < TIMES * thing.length:
                continue
            yield _finding(
                loop.where(),
                f"the loop at line {loop.line} never ends: {thing.type} never raises IndexError",
                (
                    f"`{loop.text}` asks {thing.type}.__getitem__ for 0, 1, 2 … until it raises IndexError; its "
                    f"length of {thing.length:,} is not looked at",
                    f"it has gone round {turns:,} times",
                ),
                f"Raise IndexError in {thing.type}.__getitem__ from index {thing.length:,} on, or use a DataLoader.",
            )


def _targets(loop: DescribedLoop) -> list[tuple[str, str]]:
    """The names that a `for` gives values, and these."""
    return [(each.text, each.value.text) for each in loop.targets]


def _outside(loop: Loop, place: int) -> list[list[tuple[str, str]]]:
    """What the loops around it had come to when it was first described."""
    loops = [each for each in loop.earlier[0].frame.loops if each.first < loop.line]
    return [_targets(each) for each in loops][-place:] if place else []


def _finding(where: Where, title: str, evidence: tuple[str, ...], fix: str, also: Where | None = None) -> Finding:
    return RULE.finding(
        severity="error",
        confidence=0.95,
        title=title,
        evidence=evidence,
        where=where,
        fix=Fix(fix),
        seen_by="flight",
        also=(also,) if also and also != where else (),
    )


RULE = Rule(
    "endless-epoch", "loop", decide, explains=frozenset(("duplicate-samples-across-workers",)), disproved_by_end=True
)
