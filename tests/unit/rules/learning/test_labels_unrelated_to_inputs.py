"""Targets that do not belong to their inputs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.rules.learning.trainings import case, head, loss, numbers
from unstuck.model import Finding, Question
from unstuck.recorder.records.data import Agreement, DataSeen, LabelCounts, LoaderData, PairsSeen, Relation
from unstuck.recorder.records.learning import Torn
from unstuck.rules.learning.labels_unrelated_to_inputs import RULE


def said(again: int, changed: int, level: float = 1.0, labels: LabelCounts | None = None) -> list[Finding | Question]:
    pairs = PairsSeen(again=again, changed=changed, example=(1, 2.0, 7, 3.0))
    seen = DataSeen(pid=7, loaders=[LoaderData(trains=True, pairs=pairs, labels=labels)])
    given = head("mse", target=numbers(-2, 2, 0, 1))
    return list(RULE.decide(replace(case(given, losses=[loss(level, level)]), data=(seen,))))


def test_the_same_input_with_another_target() -> None:
    (finding,) = said(100, 98)
    assert isinstance(finding, Finding)
    assert "98 of them" in finding.evidence[0]
    two = LabelCounts(classes=2, counts=[(0.0, 500), (1.0, 500)], samples=1000)
    (finding,) = said(100, 48, labels=two)
    assert isinstance(finding, Finding), "every second one has the other label by chance"


def test_only_an_experiment_tells() -> None:
    assert all(isinstance(result, Question) for result in said(100, 2) + said(9, 9))
    assert said(100, 98, level=0.2) == [], "it learns"


def of_relation(
    relation: Relation, level: float = 1.0, made_up: bool | None = False, labels: LabelCounts | None = None
) -> list[Finding | Question]:
    loader = LoaderData(trains=True, relation=relation, made_up=made_up, labels=labels)
    seen = DataSeen(pid=7, loaders=[loader])
    given = head("mse", target=numbers(-2, 2, 0, 1))
    return list(RULE.decide(replace(case(given, losses=[loss(level, level)]), data=(seen,))))


def test_targets_in_another_order_are_an_error() -> None:
    (finding,) = of_relation(Relation(rows=900, by_mean=0.1, by_neighbour=-1.0, paired="as text", by_mean_paired=139.0))
    assert isinstance(finding, Finding)
    assert (finding.severity, "10 before 2" in finding.title) == ("error", True)


def test_no_relation_at_all_is_a_warning() -> None:
    (finding,) = of_relation(Relation(rows=900, by_mean=1.4, by_neighbour=-1.0, paired="next", by_mean_paired=2.0))
    assert isinstance(finding, Finding)
    assert finding.severity == "warning"


NONE = Relation(rows=900, by_mean=1.4, by_neighbour=-1.0)


def test_what_is_drawn_at_random_on_purpose_is_no_fault() -> None:
    assert of_relation(NONE, made_up=True) == []


def test_without_the_source_labels_too_uneven_for_a_draw_count() -> None:
    def told(*counts: int) -> Finding | Question:
        shares = [(float(label), count) for label, count in enumerate(counts)]
        labels = LabelCounts(classes=len(counts), counts=shares, samples=sum(counts))
        (result,) = of_relation(NONE, made_up=None, labels=labels)
        return result

    assert isinstance(told(4600, 3000, 1400), Finding)
    assert isinstance(told(3100, 3050, 2850), Question), "ten passes over 900 samples: a draw is as uneven"
    (result,) = of_relation(NONE, made_up=None)
    assert isinstance(result, Question), "numbers"


def test_a_relation_is_no_finding_and_no_question() -> None:
    assert of_relation(Relation(rows=900, by_mean=9.0, by_neighbour=0.3)) == []
    assert of_relation(Relation(rows=900, by_mean=0.3, by_neighbour=9.0)) == [], "nothing but neighbours show it"
    assert of_relation(Relation(rows=900), level=0.2) == [], "it learns"


def of_noise(agreement: Agreement, level: float = 1.0) -> list[Finding | Question]:
    given = head("mse", target=numbers(-2, 2, 0, 1))
    training = case(given, losses=[loss(level, level)])
    found = RULE.decide(replace(training, data=(DataSeen(pid=7, agreement=agreement),)))
    return [each for each in found if isinstance(each, Finding)]


def test_noise_that_the_input_has_no_part_of() -> None:
    drawn = ("/project/train.py", 21, "main")
    (finding,) = of_noise(Agreement(rows=900, whole=0.4, by_row=-1.0, drawn=drawn))
    assert isinstance(finding, Finding)
    assert (finding.severity, finding.where.line) == ("error", 21)
    assert not of_noise(Agreement(rows=900, whole=0.4, by_row=-1.0)), "where it comes from is not known"
    assert not of_noise(Agreement(rows=900, whole=40.0, by_row=90.0, drawn=drawn)), "the input has it"
    assert not of_noise(Agreement(rows=900, whole=0.4, by_row=90.0, drawn=drawn)), "of some rows"
    assert not of_noise(Agreement(rows=900, whole=0.4, by_row=-1.0, drawn=drawn), level=0.3), "it learns"


# --- what was torn apart --------------------------------------------------------------------------------------------

SITE = ("train.py", 9, "load")
TABLE = Torn(how="reshaped", shape=[40, 900], before=[900, 40], own=0.01, other=0.9, pairs=30_000, site=SITE)
LANES = Torn(how="lanes", shape=[-1, 32], own=0.07, other=1.4, pairs=4000, site=SITE)
MIXED = Torn(how="mixed", shape=[30, 64, 24], before=[64, 30, 24], site=SITE)
ALL = (
    TABLE, LANES, MIXED, replace(TABLE, how="view"), Torn(how="backwards", site=SITE),
    replace(TABLE, shape=[50, 3, 24, 24], before=[50, 24, 24, 3]),
)  # fmt: skip


def of_torn(torn: Torn, level: float = 1.0, rows: int = 64) -> list[Finding]:
    given = head("mse", shape=[rows], target=numbers(-2, 2, 0, 1))
    known = case(given, losses=[loss(1.0, level)])
    (learning,) = known.learnings
    seen = DataSeen(pid=learning.pid, torn=None if torn.how in ("mixed", "backwards") else torn)
    learning = replace(learning, torn=torn if torn.how in ("mixed", "backwards") else None)
    decided = RULE.decide(replace(known, learnings=(learning,), data=(seen,)))
    return [result for result in decided if isinstance(result, Finding)]


@pytest.mark.parametrize("torn", ALL)
def test_it_is_said_once_with_its_line(torn: Torn) -> None:
    (finding,) = of_torn(torn)
    assert (finding.severity, finding.where.line) == ("error", 9)


def test_only_what_is_proven_counts_where_the_training_learns() -> None:
    assert [len(of_torn(torn, level=0.2)) for torn in ALL] == [0, 0, 0, 1, 1, 1]
    assert [finding.severity for torn in ALL for finding in of_torn(torn, level=0.2)] == ["error", "error", "warning"]
    assert len(of_torn(TABLE, level=0.9)) == 1, "some is memorized"
    assert of_torn(MIXED, level=0.9) == []


def test_a_view_that_moves_no_samples_is_left_alone() -> None:
    assert of_torn(MIXED, rows=16) == []
    assert len(of_torn(MIXED, rows=64 * 30)) == 1, "one row a step of each sample"


def test_without_a_line_there_is_no_finding() -> None:
    assert [finding for torn in ALL for finding in of_torn(replace(torn, site=None))] == []
