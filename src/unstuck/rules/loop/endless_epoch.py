"""endless-epoch: one pass over the data never ends.

What it sees
    A single pass has given several times as many batches as the loader says a pass has; or a stream without a
    length gives the same samples again and again, and its code shows no end; or a plain `for` goes over a dataset
    by its `__getitem__`, which never raises IndexError, or over a generator whose own loop has no end (`while
    True`, or a test that stays true because the position in it is wrapped by `%` or set to 0 again),
    `itertools.cycle`, an iterator whose `__next__` never raises StopIteration, or `iter(read, None)` with a
    function that never returns None. And nothing in the loop that draws from it can end the drawing.

Why it matters
    The first epoch never ends, so what comes after it (validation, the checkpoint, the next epoch) never happens.

Evidence
    Batches given in this pass compared with the loader's own length, for how long, and the loop that takes them, read
    from the running script.

Fix
    Let the sampler or the dataset end: yield as many samples as its length says.

When it is wrong
    A stream may give its samples several times per pass on purpose: without an endless loop in its code it must have
    done so fifty times; so it must in the validation of a library, whose loops are not read. An endless stream is fine
    where the loop around it counts its steps and leaves: then nothing is reported. A length that is only an estimate
    may be exceeded, but not three times over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from unstuck.model import Case, Finding, Fix, Where
from unstuck.recorder.records.loaders import LoaderState, OverLength, Repeats
from unstuck.recorder.records.loops import DescribedLoop, LoopFrame
from unstuck.rules.loader_reports import LoaderReport, latest
from unstuck.rules.loop.endings import never_left, why_test_holds
from unstuck.rules.loop.training_loops import Loop, Moment, moments
from unstuck.rules.rule import Rule
from unstuck.rules.words import seconds

MIN_LENGTHS = 3  # a pass so many times as long as the loader says is no estimate that went wrong
MIN_REPEATED = 64  # samples seen again in a stream without a length
MIN_ROUNDS = 50  # through the samples, where code does not show that it has no end: the stream's, or a library's


def decide(case: Case) -> Iterable[Finding]:
    if case.outcome in ("finished", "died"):
        return
    for over in latest(case, case.over_length):
        length = over.state.length
        if length and over.state.batches >= MIN_LENGTHS * length and (loop := _drawing_forever(case, over.state)):
            yield _beyond_length(over, length, loop)
        elif length and _validates_forever(case, over.state, over.state.batches / length):
            yield _validating(over, over.state.batches / length)
    for repeats in latest(case, case.repeats):
        if _starts_over(repeats.state) and (loop := _drawing_forever(case, repeats.state)):
            yield _repeating(repeats, loop)
        elif _validates_forever(case, repeats.state, _rounds(repeats.state)):
            yield _validating(repeats, _rounds(repeats.state))
    for moment in moments(case):
        yield from (_by_index(loop, turns) for loop in moment.loops if (turns := _turns_by_index(moment, loop)))
        yield from list(_through_generators(moment)) or _over_endless(moment)


# --- passes over a loader ------------------------------------------------------------------------------------


def _starts_over(state: Repeats) -> bool:
    """Samples may be given several times on purpose: its code has no end, or they come so often that no number of
    times can be meant."""
    endless = state.endless or _rounds(state) >= MIN_ROUNDS
    return state.length is None and state.own >= MIN_REPEATED and endless


def _rounds(state: Repeats) -> float:
    """How often a sample came, on average. Not all batches are looked at, so that most of its returns are not seen."""
    again = state.own / max(1, state.rows - state.own - state.other)
    return again * state.batches / state.looks if again >= 1 and state.looks else again


def _drawing_forever(case: Case, state: LoaderState) -> Loop | None:
    """The loop that draws from this loader, if the pass goes on and nothing in the loop can end the drawing; None if
    something may, or if the loop is not in code that could be read."""
    if _has_ended(case, state):
        return None
    for moment in moments(case):
        if moment.snapshot.pid != state.pid or not state.site:
            continue
        file, line, _ = state.site
        direct = [loop for loop in moment.loops if _draws(loop, file, line)]
        if direct:
            loop = direct[-1]
            through = loop.described.iterates  # islice(loader, n) ends; a function of the user's may
            bounded = through.ends is True or not through.type
            return loop if not bounded and never_left(loop) else None
        # Drawn with next(): each loop around it may be the one that stops.
        goes_on = [(loop.is_endless or why_test_holds(loop)) and never_left(loop) for loop in moment.loops]
        if goes_on and all(goes_on):
            return moment.loops[-1]
    return None


def _has_ended(case: Case, state: LoaderState) -> bool:
    ended: tuple[LoaderState, ...] = (*case.passes_ended, *case.empty_passes)
    return any((each.pid, each.number) == (state.pid, state.number) and each.at > state.at for each in ended)


def _validates_forever(case: Case, state: LoaderState, rounds: float) -> bool:
    """A library draws, whose loops are not read: but no validation goes through the same samples so often."""
    validates = state.library and state.step > 0 and not state.trained
    return validates and rounds >= MIN_ROUNDS and not _has_ended(case, state)


def _draws(loop: Loop, file: str, line: int) -> bool:
    """The `for` whose own line made the iterator."""
    return not loop.is_while and loop.frame.file == file and loop.line <= line <= loop.described.header


def _beyond_length(report: LoaderReport[OverLength], length: int, loop: Loop) -> Finding:
    state, settings = report.state, report.settings
    site = settings.sampler_site or settings.dataset_site
    what = site[2].rpartition(".")[0] or site[2] if site else "the sampler"
    return _finding(
        report.where(settings.sampler_site, settings.dataset_site),
        f"the epoch never ends: {what} continues after the {length:,} batches that the loader says it has",
        f"this pass has given {state.batches:,} batches in {seconds(state.seconds)}; the loader's own length is "
        f"{length:,}",
        f"Let {what}.__iter__ return after one pass, or leave the loop at line {loop.line} after {length:,} batches.",
        loop,
    )


def _repeating(report: LoaderReport[Repeats], loop: Loop) -> Finding:
    state, settings = report.state, report.settings
    sites, what = (settings.dataset_site, settings.sampler_site), report.dataset
    if not state.iterable and settings.sampler_site is not None:  # the order of its samples is what has no end
        sites, what = sites[::-1], settings.sampler_site[2].partition(".")[0]
    return _finding(
        report.where(*sites),
        f"the epoch never ends: {what} starts over instead of ending",
        f"this pass has given {state.batches:,} batches in {seconds(state.seconds)}, and {state.own:,} of "
        f"{state.rows:,} samples compared had already come in the same pass",
        f"Let {what}.__iter__ end after one pass, or count the steps and leave the loop at line {loop.line}.",
        loop,
    )


def _validating(report: LoaderReport[OverLength] | LoaderReport[Repeats], rounds: float) -> Finding:
    state, dataset = report.state, report.dataset
    where = report.where(report.settings.dataset_site, report.settings.sampler_site)
    return RULE.finding(
        severity="error",
        confidence=0.95,
        title=f"the validation never ends: {dataset} starts over instead of ending",
        evidence=(
            f"this pass has given {state.batches:,} batches in {seconds(state.seconds)} without a training step; each "
            f"sample has come about {rounds:,.0f} times",
            f"they are drawn at {report.line}, in a library",
        ),
        where=where,
        fix=Fix(
            f"Let {dataset}.__iter__ end after one pass, or tell the trainer how many batches to validate with.",
            setting="validation batches",
        ),
        seen_by="flight",
    )


def _finding(where: Where, title: str, evidence: str, fix: str, loop: Loop) -> Finding:
    return RULE.finding(
        severity="error",
        confidence=0.95,
        title=title,
        evidence=(evidence, f"they go into `{loop.text}` (line {loop.line}), and nothing in it leaves the loop"),
        where=where,
        fix=Fix(fix),
        seen_by="flight",
        also=(loop.where(),) if loop.where() != where else (),
    )


# --- a `for` by index ----------------------------------------------------------------------------------------


def _turns_by_index(moment: Moment, loop: Loop) -> int:
    """Iterations of a `for` by index without a way out; 0 if they are not far beyond the length."""
    through = loop.described.iterates
    if not through.by_index or not through.length or loop.exits:
        return 0
    counted = [number for side in loop.described.targets if isinstance(number := side.value.number, int)]
    turns = max([*counted, loop.steps_since if _same_round(moment, loop) else 0])
    return turns if turns >= MIN_LENGTHS * through.length else 0


def _same_round(moment: Moment, loop: Loop) -> bool:
    """The loops around it are where they were when it was first described: all steps since were made in it. That is
    seen by the numbers and texts that they count with; a `while`, or a `for` over objects, has none."""
    if not loop.earlier:
        return False
    around = [outer.described for outer in moment.loops[: moment.loops.index(loop)]]
    frames = [frame for frame in reversed(loop.earlier[0].snapshot.frames) if not frame.generator]
    then = [outer for frame in frames for outer in frame.loops][: len(around)]
    rounds = [_round(outer) for outer in around]
    return all(values for _, values in rounds) and rounds == [_round(outer) for outer in then]


def _round(loop: DescribedLoop) -> tuple[int, list[str]]:
    """Where a `for` is, and the plain values that it assigns."""
    return loop.first, [side.value.text for side in loop.targets if side.value.kind in ("number", "text")]


def _by_index(loop: Loop, turns: int) -> Finding:
    through = loop.described.iterates
    site = through.item_site
    where = loop.where() if site is None else replace(loop.where(), file=site[0], line=site[1], function=site[2])
    return RULE.finding(
        severity="error",
        confidence=0.95,
        title=f"the loop at line {loop.line} never ends: {through.type} never raises IndexError",
        evidence=(
            f"`{loop.text}` calls {through.type}.__getitem__ with 0, 1, 2 … until it raises IndexError; its length of "
            f"{through.length:,} plays no part in it",
            f"it has made {turns:,} iterations",
        ),
        where=where,
        fix=Fix(
            f"Raise IndexError in {through.type}.__getitem__ from index {through.length:,} on, or use a DataLoader."
        ),
        seen_by="flight",
        also=(loop.where(),) if site is not None else (),
    )


# --- a `for` over a generator ----------------------------------------------------------------------------------------


def _over_endless(moment: Moment) -> list[Finding]:
    """A `for` over what never runs out, within another loop that waits for its end, and that nothing leaves."""
    return [
        _never_runs_out(loop)
        for outer, loop in pairwise(moment.loops)
        if not (outer.is_endless or loop.is_while)
        and loop.is_endless
        and loop.steps_since >= MIN_REPEATED
        and never_left(loop)
    ][:1]


def _never_runs_out(loop: Loop) -> Finding:
    through = loop.described.iterates
    maker, where = through.maker, loop.where()
    name = maker[2] if maker else f"`{through.text}`"
    if maker:
        where = replace(where, file=maker[0], line=maker[1], function=maker[2])
    how = "never returns None" if through.type == "callable_iterator" else "starts over instead of ending"
    return _finding(
        where,
        f"the loop at line {loop.line} never ends: {name} {how}",
        f"{loop.steps_since:,} steps were made in one pass over `{through.text}` in {seconds(loop.seconds_since)}, and "
        + (f"line {maker[1]} of {name} has no way out" if maker else "it never runs out")
        + (f": what its body assigns keeps `{through.stays_true}` true" if through.stays_true else ""),
        f"Let {name} end after one pass over the data, or leave the loop at line {loop.line} by a count of steps.",
        loop,
    )


def _through_generators(moment: Moment) -> Iterable[Finding]:
    """A generator of the user's that goes round forever, drawn by a `for` that nothing leaves."""
    for frame in moment.snapshot.frames:
        source = [loop for loop in moment.inside if loop.frame is frame]
        endless = next((loop for loop in source if loop.is_endless and never_left(loop)), None)
        loop = _drawing_loop(moment, frame) if endless is not None else None
        # Steps in a `for` that no other loop is around may be meant to go on until somebody stops them.
        if endless is None or loop is None or (loop.steps_since and loop is moment.loops[0]):
            continue
        if loop.passes_since >= MIN_LENGTHS or loop.steps_since >= MIN_REPEATED:
            yield _generated(loop, endless)


def _drawing_loop(moment: Moment, generator: LoopFrame) -> Loop | None:
    """The `for` that draws from it, perhaps through other generators; None if something on the way may end it."""
    loops = (*moment.loops, *moment.inside)
    for _ in moment.snapshot.frames:
        drawing = [loop for loop in loops if loop.frame.number == generator.called_by]
        if not drawing or drawing[-1].is_while or not _at_its_head(drawing[-1]):
            return None
        loop = drawing[-1]
        if loop.described.iterates.ends is True or not never_left(loop):
            return None
        if not loop.frame.generator:
            return loop
        generator = loop.frame
    return None


def _at_its_head(loop: Loop) -> bool:
    return loop.line <= loop.frame.line <= loop.described.header


def _generated(loop: Loop, endless: Loop) -> Finding:
    name = endless.frame.function
    since = (
        f"{loop.passes_since:,} passes over a loader were" if loop.passes_since else f"{loop.steps_since:,} steps were"
    )
    return _finding(
        endless.where(),
        f"the loop at line {loop.line} never ends: {name} starts over instead of ending",
        f"it draws from {name}, whose `{endless.text}` (line {endless.line}) has no way out that can be taken; {since} "
        f"begun in it in {seconds(loop.seconds_since)}",
        f"Let {name} end after one pass where this loop uses it, or leave the loop at line {loop.line} by a count.",
        loop,
    )


RULE = Rule(
    "endless-epoch", "loop", decide, explains=frozenset(("duplicate-samples-across-workers",)), disproved_by_end=True
)
