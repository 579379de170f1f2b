"""The last resort of the family."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.rules.learning.trainings import case, classes, found, head, loss
from unstuck.rules.diagnose import diagnose
from unstuck.rules.learning import RULES, no_better_than_constant


def test_the_last_resort_is_information_and_silent_beside_a_cause() -> None:
    stuck = head("cross_entropy", target=classes(0.26, 10, constant=2.3))
    (finding,) = diagnose(case(stuck), RULES).findings
    assert (finding.rule, finding.severity) == ("no-better-than-constant", "info")
    assert "checked and fine" in finding.evidence[1]
    (cause,) = diagnose(case(replace(stuck, after="softmax", after_dim=1, after_shape=[32, 10])), RULES).findings
    assert cause.rule == "activation-applied-twice"
    assert found(no_better_than_constant.RULE, stuck, losses=[loss(2.3, 1.9)]) == []
    assert found(no_better_than_constant.RULE, replace(stuck, bare=False)) == []
