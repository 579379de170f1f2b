"""workers-take-turns: only one of several workers works at a time, though all of them could.

What it sees
    Several workers are making batches, and in nearly every snapshot all but one of them wait for a lock that processes
    share (a multiprocessing lock, a file lock), while the training waits for data. Without a DataLoader: a loop of the
    script asks a process or thread of its own in each round (through a pipe, a queue, a future, a pool, by starting
    it) and waits for the answer before the next round, although no request needs an answer of an earlier round; in
    nearly every snapshot at most one of them works.

Why it matters
    Four workers that work one after the other are as fast as one worker, at the cost of four.

Evidence
    In how many snapshots at most one of them was working; the line that takes the lock, or waits for the answer, with
    its share of the stack samples; the time that is lost; how fast the workers could be without it.

Fix
    Hold the lock only around what really must not happen twice at once, or give each worker a file, connection or
    reader of its own, opened in the worker. In a loop: first send all requests, then wait for the answers.

When it is wrong
    If the thing behind the lock can serve only one (one tape, one camera), the lock is right and there are too many
    workers: the loss is real, the fix is another. The same holds for helpers that use one thing outside of the run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from unstuck.model import Case, Finding, Strain, Turns, Where
from unstuck.rules.pace.loader_waits import (
    MIN_ALONE_SHARE,
    MIN_BATCHES,
    MIN_COMPUTING_SHARE,
    MIN_LOST_SECONDS,
    LoaderWait,
    cores_text,
    line_text,
    mean,
    starving,
    times,
)
from unstuck.rules.rule import Rule
from unstuck.rules.words import seconds
from unstuck.text import spot

MIN_WAIT_SHARE = 0.3  # of the time, at the line that waits for one helper after the other
MIN_WAIT_SAMPLES = 60
MIN_SEEN = 20  # snapshots in which a helper was at work
MIN_AT_WORK = 0.5  # of the waiting: else they themselves wait for something


def decide(case: Case) -> Iterable[Finding]:
    yield from _behind_a_lock(case)
    own = [(strain, strain.turns) for strain in case.strains if strain.turns is not None]
    found = ((_gain(strain, turns), strain, turns) for strain, turns in own if not _around_a_step(case, turns))
    worth = [each for each in found if _worth_telling(case, *each)]
    if worth:
        yield _one_after_the_other(case, *max(worth, key=lambda each: each[0]))


def _behind_a_lock(case: Case) -> Iterable[Finding]:
    wait = starving(case)
    if wait is None or not wait.takes_turns:
        return
    strain, workers, lock = wait.strain, len(wait.strain.fetchers), wait.strain.lock
    blocked = mean(fetcher.blocked for fetcher in strain.fetchers)
    at = f" at {spot(lock.file, lock.line)}" if lock is not None else ""
    yield RULE.finding(
        severity="warning",
        confidence=0.95 if lock is not None else 0.8,
        title=f"the workers take turns{at}: only one of {workers} makes a batch at a time, and the training waits "
        f"{wait.share:.0%} of the time",
        evidence=(
            f"in {strain.alone} of {strain.together} snapshots with two or more workers making a batch, at most one "
            f"was working; a worker waits for the lock {blocked:.0%} of the time",
            line_text(lock) if lock is not None else "",
            wait.lost_text,
            cores_text(strain),
            f"{times(_gain_without_lock(wait))} as fast if they did not wait for each other",
        ),
        where=wait.where(lock),
        fix=f"Hold the lock{f' {lock.takes}' if lock and lock.takes else ''} only around what must not happen twice "
        "at once, not around the whole sample; or open a file or connection of its own in each worker, and remove "
        "the lock.",
        seen_by="kernel",
    )


def _gain_without_lock(wait: LoaderWait) -> float:
    strain, workers = wait.strain, len(wait.strain.fetchers)
    busy = sum(fetcher.busy for fetcher in strain.fetchers)
    working = max(1e-9, busy - sum(fetcher.blocked for fetcher in strain.fetchers))
    cores_each = sum(fetcher.cpu for fetcher in strain.fetchers) / working
    room = max(1.0, (strain.cores - strain.others) / cores_each) if cores_each > 0.3 else workers
    return wait.gain(wait.making * working / busy * max(1.0, workers / room))


# --- without a loader ------------------------------------------------------------------------------------------------


def _around_a_step(case: Case, turns: Turns) -> bool:
    """The model is another one in the next round: what is asked may depend on it."""
    frames = (frame for snapshot in case.loop_snapshots for frame in snapshot.frames)
    loops = {(frame.file, loop.first, loop.last) for frame in frames for loop in frame.loops}
    return (turns.line.file, *turns.loop) in loops


def _gain(strain: Strain, turns: Turns) -> float:
    """How many times as fast the run would be if all of them worked at once; of those that compute, as many as have a
    core. Threads that compute may need the interpreter, which only one can have."""
    share, training = turns.line.share, strain.training or 0.0
    computing = training - (1 - share) if turns.threads else strain.cpu - training
    at_once = float(turns.helpers)
    if computing >= MIN_COMPUTING_SHARE * share:
        at_once = 1.0 if turns.threads else min(at_once, strain.cores - strain.others)
    return 1 / (1 - share + share / max(1.0, at_once))


def _worth_telling(case: Case, gain: float, strain: Strain, turns: Turns) -> bool:
    line, seen = turns.line, turns.seen
    of = line.samples if turns.threads else strain.looks
    certain = seen >= max(MIN_SEEN, MIN_AT_WORK * line.share * of) and turns.alone >= MIN_ALONE_SHARE * seen
    enough = turns.helpers >= 2 and line.share >= MIN_WAIT_SHARE and line.samples >= MIN_WAIT_SAMPLES
    lost = (1 - 1 / gain) * _trained(case, strain)
    return certain and enough and strain.steps >= MIN_BATCHES and lost >= MIN_LOST_SECONDS


def _trained(case: Case, strain: Strain) -> float:
    """Seconds from the first step to the last."""
    steps = next((trend.steps for trend in case.trends if trend.pid == strain.pid), ())
    return steps[-1].ended - steps[0].ended if steps else 0.0


def _one_after_the_other(case: Case, gain: float, strain: Strain, turns: Turns) -> Finding:
    line, who = turns.line, "threads" if turns.threads else "processes"
    trained, snapshots = _trained(case, strain), "stack samples" if turns.threads else "snapshots"
    first, last = turns.loop
    loop = f"line {first}" if first == last else f"lines {first}–{last}"
    waits = replace(line, waiting="lock" if turns.threads else "socket")
    return RULE.finding(
        severity="warning",
        confidence=0.9,
        title=f"the script's own {who} take turns: for {line.share:.0%} of the time {spot(line.file, line.line)} waits "
        "for one of them before it asks the next",
        evidence=(
            f"in {turns.alone} of {turns.seen} {snapshots} in which one of {turns.helpers} {who} was at work, no other "
            "one was",
            line_text(waits, "the training"),
            f"the loop at {loop} asks and waits in the same round, and no request in it needs an earlier answer",
            f"{seconds(line.share * trained)} of {seconds(trained)} went into these waits",
            cores_text(strain),
            f"{times(gain)} as fast if all of them worked at the same time",
        ),
        where=Where(line.file, line.line, line.function, pid=strain.pid),
        fix=f"Ask all of them first, in a loop of its own (send, submit, start), and wait for the answers in a second "
        f"loop after it, or use a `map` of the pool: then the {who} work at the same time.",
        seen_by="py-spy",
    )


RULE = Rule("workers-take-turns", "pace", decide, explains=frozenset({"starved-for-data"}), gathers=True)
