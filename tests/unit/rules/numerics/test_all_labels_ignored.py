"""Batches whose labels the loss all ignores."""

from __future__ import annotations

from tests.unit.rules.numerics.trainings import IGNORED, SITE, birth, broken_loss, found
from unstuck.recorder.records.learning import LossHead, Targets
from unstuck.rules.numerics import all_labels_ignored, nonfinite_born


def test_labels_that_are_all_ignored() -> None:
    births = [birth(operations=[IGNORED])]
    assert found(all_labels_ignored.RULE, losses=[broken_loss()], births=births)
    assert not found(nonfinite_born.RULE, losses=[broken_loss()], births=births)


def test_an_ignored_batch_is_reported_once() -> None:
    births = [birth(operations=[IGNORED])]
    head = LossHead(op="cross_entropy", times=20, target=Targets(count=0, batches=20), site=SITE, called=SITE)
    assert len(found(all_labels_ignored.RULE, losses=[broken_loss()], births=births, heads=[head])) == 1
    assert len(found(all_labels_ignored.RULE, heads=[head])) == 1
