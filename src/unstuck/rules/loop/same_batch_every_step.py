"""same-batch-every-step: every step trains on the same batch.

What it sees
    The contents of the batches that the loader gives are identical step after step, although the loader has more than
    one batch: usually `next(iter(loader))`, which begins a new pass each time and takes its first batch. Or, where a
    script makes its batches itself: what the model gets, or the numbers of the rows it looks up in plain tensors, is
    made anew in each step with the same contents, by code that seeds its generator each time, takes the first element
    of a new generator (`next(batches(data))`), or cuts at a position that nothing moves; or it is drawn with the global
    generator, and another line of the step (an evaluation that is to be reproducible) seeds that.

Why it matters
    The model memorises one batch: the loss falls, and on all other data it stays as bad as it was.

Evidence
    How many batches that were compared had the same contents (bytes of up to 8 of their samples), whether they followed
    each other, and how many passes over the loader began for them. Every batch is compared in the first steps and at
    the beginning of a pass, later about one in thirty-two.

Fix
    Create the iterator once, before the loop, or write `for batch in loader`; create and seed the generator once; give
    an evaluation a generator of its own; advance the position.

When it is wrong
    Overfitting one batch on purpose is usually done with a batch kept in a variable, which is not seen here, or with a
    dataset of one batch, which is not reported; nor is a library that begins the passes. Synthetic data that is the
    same for every index is information only. Without a loader, full-batch training and one batch on purpose have the
    same contents too: only the code decides, and a tensor that is kept and given again is never reported. Where no
    samples are picked but values are made up from one seed, it is a warning: points that stay the same may be meant.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix, Where
from unstuck.recorder.records.loops import SameGiven
from unstuck.rules.loader_reports import latest
from unstuck.rules.rule import Rule

MIN_SAME = 7  # identical batches after the first
MIN_SAME_MADE = 3  # the same where the code that makes them shows why


def decide(case: Case) -> Iterable[Finding]:
    given = {(record.pid, record.site): record for record in case.same_given}  # the last of each place
    yield from [_made_anew(record) for record in given.values() if record.same >= MIN_SAME_MADE][:1]
    for report in latest(case, case.same_batches):
        state = report.state
        if state.same < MIN_SAME or state.length == 1 or not state.step:
            continue
        rebuilt = state.short >= state.same - 1
        if rebuilt and state.library:
            continue  # on purpose: Lightning's `overfit_batches=1`
        if not rebuilt and state.passes > 1 and state.batches <= state.same:
            continue  # the first batch of many passes: drawn now and then, to look at
        in_a_row = state.apart == 1
        if rebuilt:
            why = f"{state.passes:,} passes over it began at {report.line}, for {state.step:,} training steps"
            fix = (
                "Create the iterator once before the loop (`it = iter(loader)`, then `next(it)`), or write `for batch "
                f"in loader`: {report.line} begins a new pass each time and takes its first batch."
            )
        elif in_a_row:
            why = "they came from one pass: the dataset returns the same for every index"
            fix = "Unless that is intended, check what the dataset does with the index it gets."
        else:
            why = f"up to {state.apart} batches lie between two of them: those in between were not compared"
            fix = "Unless that is intended, check whether the data repeats, or is the same for every index."
        length = f", although a pass has {state.length:,}" if state.length else ""
        yield RULE.finding(
            severity="error" if rebuilt else "info",
            confidence=0.95 if rebuilt else 0.7,
            title=f"{state.same + 1} {'batches in a row' if in_a_row else 'compared batches'} had the same contents",
            evidence=(
                f"the last {state.same + 1} {'batches' if in_a_row else 'compared batches'} of {report.name} were byte "
                f"for byte the same{length}",
                why,
            ),
            where=report.where() if rebuilt else report.where(report.settings.dataset_site),
            fix=Fix(fix),
            seen_by="flight",
        )


def _made_anew(record: SameGiven) -> Finding:
    remade = record.remade
    file, line, name = remade.site or record.site or ("", 0, "")
    why, fix = {
        "reseeded": (
            f"{name} seeds its generator in every step",
            f"Create and seed the generator once, before the loop, and use it in every step: `{remade.text}` (line "
            f"{line}) makes it give the same numbers again.",
        ),
        "reset": (
            f"{name} seeds the global generator in every step",
            f"Draw what `{remade.text}` (line {line}) is meant for with a generator of its own (`torch.Generator()`, "
            "`np.random.default_rng()`, `random.Random()`): it sets back the global one, which draws the batches.",
        ),
        "restarted": (
            f"`{remade.text}` takes the first batch of a new iterator in every step",
            "Create the iterator once, before the loop (`stream = …`, then `next(stream)`), or write `for batch in …`.",
        ),
        "not moved": (
            "nothing moves the position at which it is cut",
            f"Advance the position in `{remade.text}` (line {line}) in every step, and start over at the end.",
        ),
    }[remade.how]
    where = Where(file, line, name, pid=record.pid, step=record.step)
    at = Where(*(record.site or (file, line, name)), pid=record.pid, step=record.step)
    return RULE.finding(
        severity="error" if remade.drawn == "samples" else "warning",
        confidence=0.95 if remade.drawn == "samples" else 0.8,
        title=f"every step trains on the same batch: {why}",
        evidence=(
            f"{record.same + 1} batches of {record.rows:,} samples that the model got from step {record.first:,} to "
            f"{record.step:,} were compared: their first samples were byte for byte the same",
            f"`{remade.call}` draws the batch in every step, and `{remade.text}` (line {line}) was seen to seed the "
            "generator after it"
            if remade.how == "reset"
            else f"`{remade.call}` makes the batch anew in every step, by `{remade.text}` (line {line})"
            if remade.call != remade.text
            else f"`{remade.call}` (line {line}) makes the batch anew in every step",
        ),
        where=where,
        fix=Fix(fix),
        seen_by="flight",
        also=(at,) if at != where else (),
    )


RULE = Rule("same-batch-every-step", "loop", decide, explains=frozenset(("loader-rebuilt-every-step",)))
