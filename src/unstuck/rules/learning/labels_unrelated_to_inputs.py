"""labels-unrelated-to-inputs: the targets have nothing to do with their inputs.

What it sees
    The loss has come to rest at the entropy of the class frequencies, or at the variance of the targets, and one of
    three: inputs that come once more have another target each time (the two are shuffled apart while the training
    runs); the targets fit their inputs in another order of the samples (the next one's, reversed, numbers sorted as
    text), in a dataset or in tables that the script draws its batches from itself; or the inputs are rows of features,
    simple tests on those that were read find no relation at all between them and their targets, and none of the two was
    drawn at random on purpose. Or the script gathers results of parallel tasks as they finish
    (`as_completed`, `imap_unordered`), without what they belong to, and goes through the tasks once more. Or the target
    is noise that the script draws for it alone, while the model's input has another draw in it.

    Also what tears apart things that belong together while all sizes stay right: an array that gets another shape where
    its axes should have been exchanged (a table of m rows read as n rows, pairs made into two rows, pictures with
    the channels last read as if they came first); a stream cut into sequences across instead of along; a batch that the
    model views as (time, batch) though it is (batch, time); returns of reinforcement learning that are appended from
    the last step on and never turned round.

Why it matters
    There is nothing to learn: inputs sorted one way and targets another, or only one of the two shuffled.

Evidence
    How many inputs came again, how many of these with another target, and one of them; or the tests, in standard
    deviations above what chance gives, with the targets as they are and as they would fit. The loss compared with that
    of a constant prediction. Where the inputs are no rows of numbers, it asks for the experiment that decides. Of an
    array that was torn apart: the line that reshapes it, and how much neighbours in it, and in the shape it had
    before, say about each other.

Fix
    Pair each input with its own target: shuffle both with the same permutation, sort both by the same key. Otherwise
    print some pairs, and train once with permuted targets: if the curve is the same, they carried no information. Where
    axes have to be exchanged, `transpose` or `permute` does it: `reshape` and `view` leave every number in its place.

When it is wrong
    A relation that neither means nor neighbours show (parity, a cipher) is not found by the tests; that is a warning,
    not an error. It says nothing where the loss is below that of a constant prediction: then the targets do say
    something about the inputs. Nor does it where a trial run draws inputs or targets at random and computes nothing
    from them; where the source does not say how they are made, only labels too uneven for a fair draw count. Rows with
    fewer than four distinct values are not recognized when they come again. Of arrays, a view or reshape alone says
    nothing: rows must have nothing in common as they are and much as they were, and, except where memory, pictures or
    returns prove it, the loss must be near that of a constant prediction. An array whose rows were shuffled, or whose
    neighbours have nothing to do with each other, shows nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt

from unstuck.model import Case, Finding, Question
from unstuck.recorder.records import Site
from unstuck.recorder.records.data import Agreement, LabelCounts, LoaderData, PairedWith, Relation
from unstuck.recorder.records.learning import Learning, LossHead
from unstuck.rules.learning.torn_apart import torn_apart
from unstuck.rules.rule import Rule
from unstuck.rules.training import line, now, number, stuck_at_constant, where

MIN_OTHERS = 12  # inputs that came once more with another target
MIN_CHANGED = 0.8  # of those that would have another target if it were drawn at random
NO_RELATION = 2.5  # standard deviations: chance alone gives more in less than 1 of 100 datasets
MAX_UNEVEN = 4.0  # the same, of how often each label comes: a fair draw never gives more
MIN_RARE = 50  # samples of other classes than the most frequent; fewer cannot show a relation
MIN_FIT = 10.0  # the same, of targets in another order: chance never gives that
ORDERS: dict[PairedWith, tuple[str, str]] = {
    "next": ("each input belongs to the target of the next sample", "Shift one of the two by one sample."),
    "previous": ("each input belongs to the target of the previous sample", "Shift one of the two by one sample."),
    "reversed": ("the targets are in reverse order", "Reverse one of the two."),
    "as text": (
        "the inputs are sorted by their numbers as text (10 before 2), the targets are not",
        "Sort the files by their number (`key=lambda name: int(...)`), or read the target of each by its name.",
    ),
    "text as numbers": (
        "the targets are sorted by their numbers as text (10 before 2), the inputs are not",
        "Sort both by the number (`key=lambda name: int(...)`), or read the target of each sample by its name.",
    ),
}


def decide(case: Case) -> Iterable[Finding | Question]:
    torn = {learning.pid: words for learning, words in torn_apart(case)}
    yield from (RULE.finding(**words) for words in torn.values())
    for learning, head, loss, best in stuck_at_constant(case):
        if learning.pid in torn:
            continue
        outcome = f"a constant prediction gives {number(best)}{now(loss)}"
        seen = [each for each in case.data if each.pid == learning.pid][-1:]
        loaders = [data for each in seen for data in each.loaders if data.trains]
        noise = next((each.agreement for each in seen if each.agreement is not None), None)
        if noise is not None and noise.drawn is not None and max(abs(noise.whole), noise.by_row) < NO_RELATION:
            yield _other_noise(learning, noise, noise.drawn, outcome)
            continue
        found = next((each for data in loaders if (each := _judge(learning, head, data, outcome)) is not None), None)
        if found is not None and found.severity == "warning" and case.outcome == "died":
            return  # it has another trouble
        if found is None and any(_is_related(data) or data.made_up for data in loaders):
            return  # they do belong together, as far as can be seen; or there is nothing to learn, and need not be
        yield found or Question(
            RULE.name,
            "Do the targets belong to the inputs?",
            "Train once with permuted targets: if the loss curve is the same, they do not.",
        )


def _other_noise(learning: Learning, noise: Agreement, drawn: Site, outcome: str) -> Finding:
    return RULE.finding(
        severity="error",
        confidence=0.9,
        title=f"The target is drawn for itself: {line(drawn)} draws noise that the model's input has no part of",
        evidence=(
            f"what {line(drawn)} draws goes into the loss and nowhere else; the script mixes other draws into its data",
            f"in {noise.rows:,} samples, the model's input agrees with its target {noise.whole:.1f} standard "
            f"deviations from chance in all, and {noise.by_row:.1f} sample by sample",
            outcome,
        ),
        where=where(learning, drawn),
        fix="Compute the input from the same draw: pass the noise on to the function that adds it, or have that return "
        "what it drew.",
    )


def _judge(learning: Learning, head: LossHead, data: LoaderData, outcome: str) -> Finding | None:
    relation = data.relation
    if _is_apart(data):
        return _apart(learning, head, data, outcome)
    if data.as_finished is not None and not _is_related(data):
        return _as_finished(learning, data.as_finished, outcome)
    if relation is None or _is_related(data):
        return None
    if relation.paired is not None and relation.by_mean_paired >= MIN_FIT * max(1.0, relation.by_mean):
        return _other_order(learning, head, data, (relation, relation.paired), outcome)
    if relation.coarse or data.made_up or (data.made_up is None and not _is_uneven(data.labels, relation)):
        return None
    if _rare(data.labels, relation) < MIN_RARE:
        return None
    return _no_relation(learning, head, data, relation, outcome)


def _is_related(data: LoaderData) -> bool:
    relation = data.relation
    enough = MIN_FIT if relation is not None and relation.coarse else NO_RELATION
    return relation is not None and max(relation.by_mean, relation.by_neighbour) > enough


def _rare(labels: LabelCounts | None, relation: Relation) -> float:
    """So many of the samples compared are not of the most frequent class."""
    if labels is None or not labels.samples:
        return relation.rows
    return relation.rows * (1 - max(count for _, count in labels.counts) / labels.samples)


def _is_uneven(labels: LabelCounts | None, relation: Relation) -> bool:
    """Too much for labels drawn at random, each as likely as the others."""
    if labels is None or not labels.samples or labels.classes != len(labels.counts):
        return False
    free = labels.classes - 1
    parts = (labels.classes * count / labels.samples - 1 for _, count in labels.counts)
    square = relation.rows / labels.classes * sum(part * part for part in parts)
    return square > free + MAX_UNEVEN * sqrt(2 * free)


def _is_apart(data: LoaderData) -> bool:
    pairs, labels = data.pairs, data.labels
    shares = [count / labels.samples for _, count in labels.counts] if labels is not None and labels.samples else []
    by_chance = 1 - sum(share * share for share in shares)  # that a target drawn at random is another one
    return pairs.changed >= max(MIN_OTHERS, MIN_CHANGED * by_chance * pairs.again)


def _apart(learning: Learning, head: LossHead, data: LoaderData, outcome: str) -> Finding:
    pairs = data.pairs
    example = ""
    if pairs.example is not None:
        one, target, other, another = pairs.example
        example = f"one input has the target {target:g} in batch {one} of those read, and {another:g} in batch {other}"
    return RULE.finding(
        severity="error",
        confidence=0.9,
        title="Targets do not belong to their inputs: the same input comes with another target each time",
        evidence=(
            f"{pairs.again:,} inputs came once more in a later batch, {pairs.changed:,} of them with another target",
            example,
            outcome,
        ),
        where=where(learning, data.made or data.site or head.site),
        fix="Shuffle inputs and targets with the same permutation: `order = torch.randperm(len(x))`, then `x[order]` "
        "and `y[order]`.",
    )


def _as_finished(learning: Learning, gathers: Site, outcome: str) -> Finding:
    return RULE.finding(
        severity="warning",
        confidence=0.85,
        title=f"Inputs and targets are in different orders: {line(gathers)} gathers results as they finish",
        evidence=(
            f"{line(gathers)} puts the results of parallel tasks one behind the other in the order in which they "
            "finish; nothing says which task each belongs to, and the script goes through the tasks once more in their "
            "own order",
            outcome,
        ),
        where=where(learning, gathers),
        fix="Gather results in the order of the tasks: `pool.map`, or `[job.result() for job in jobs]`; or have each "
        "task return its target with its result.",
    )


def _other_order(
    learning: Learning, head: LossHead, data: LoaderData, known: tuple[Relation, PairedWith], outcome: str
) -> Finding:
    relation, order = known
    meaning, fix = ORDERS[order]
    return RULE.finding(
        severity="error",
        confidence=0.97,
        title=f"Inputs and targets are paired in the wrong order: {meaning}",
        evidence=(
            f"in {relation.rows:,} samples, how much inputs say about their targets is {relation.by_mean:.1f} standard "
            f"deviations from chance as they are paired, and {relation.by_mean_paired:.0f} where {meaning}",
            outcome,
        ),
        where=where(learning, data.dataset_site or data.made or data.site or head.site),
        fix=fix,
    )


def _no_relation(learning: Learning, head: LossHead, data: LoaderData, relation: Relation, outcome: str) -> Finding:
    return RULE.finding(
        severity="warning",
        confidence=0.75,
        title="The inputs say nothing about their targets: simple tests find no more than chance gives",
        evidence=(
            f"in {relation.rows:,} samples, differences between the means of the inputs are {relation.by_mean:.1f}, "
            f"and agreement with the most similar sample {relation.by_neighbour:.1f} standard deviations from what "
            "targets drawn at random would give",
            outcome,
        ),
        where=where(learning, data.dataset_site or data.made or data.site or head.site),
        fix="Print some pairs as they come out of the loader: input and target must belong to the same sample (the "
        "same order of files, the same permutation for both).",
    )


RULE = Rule(
    "labels-unrelated-to-inputs", "learning", decide, explains=frozenset(("no-better-than-constant",)), gathers=True
)
