"""A counter that noise sets back: what must be known before that is said, by saved Cases that are changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.rules.record_cases import saved_case
from unstuck.model import Case, Finding
from unstuck.recorder.records.learning import Loss
from unstuck.rules.loop import stop_condition_never_met
from unstuck.serial import from_plain, to_plain

SAVED = ("stop-gradient-below-noise", "stop-patience-against-the-last")


def said(case: Case) -> list[Finding]:
    found = stop_condition_never_met.decide(replace(case, outcome="running"))
    return [each for each in found if isinstance(each, Finding)]


def with_loss(case: Case, change: Callable[[Loss], Loss]) -> Case:
    learnings = [replace(each, losses=[change(loss) for loss in each.losses]) for each in case.learnings]
    return replace(case, learnings=tuple(learnings))


def falling(loss: Loss) -> Loss:
    count = len(loss.points)
    return replace(loss, points=[(step, 2.0 - n / count) for n, (step, _) in enumerate(loss.points)])


def changed(case: Case, change: Callable[[dict[str, Any], int], None]) -> Case:
    """Every condition of every description, with the number of the description."""
    plain = to_plain(case)

    def walk(node: Any, number: int) -> None:
        if isinstance(node, dict):
            if "wanted" in node:
                change(node, number)
            for inner in node.values():
                walk(inner, number)
        for inner in node if isinstance(node, list) else ():
            walk(inner, number)

    for number, snapshot in enumerate(plain["loop_snapshots"]):
        walk(snapshot["frames"], number)
    return from_plain(Case, plain)


def number(side: dict[str, Any], value: float) -> None:
    side["value"] = {"kind": "number", "text": str(value), "number": value}


@pytest.mark.parametrize("name", SAVED)
def test_it_is_a_warning(name: str) -> None:
    [finding] = said(saved_case(name))
    assert finding.severity == "warning"
    assert finding.confidence < 0.8


@pytest.mark.parametrize("name", SAVED)
def test_a_loss_that_still_falls_leaves_it_time(name: str) -> None:
    assert not said(with_loss(saved_case(name), falling))


@pytest.mark.parametrize("name", SAVED)
def test_a_loss_that_is_not_known_to_the_end_says_nothing(name: str) -> None:
    assert not said(
        with_loss(saved_case(name), lambda loss: replace(loss, points=loss.points[: len(loss.points) // 2]))
    )


@pytest.mark.parametrize("name", SAVED)
def test_a_counter_that_was_seen_to_rise_may_come_to_its_bound(name: str) -> None:
    def once_high(leaf: dict[str, Any], description: int) -> None:
        if leaf["text"].startswith(("small <", "stopping.bad >=")) and description == 5:
            number(leaf["compared"]["left"], leaf["compared"]["right"]["value"]["number"] // 2)

    assert not said(changed(saved_case(name), once_high))


@pytest.mark.parametrize("name", SAVED)
def test_values_that_move_one_way_are_no_noise(name: str) -> None:
    def sinking(leaf: dict[str, Any], description: int) -> None:
        if leaf["text"].startswith(("norm <", "val_loss <")):
            number(leaf["compared"]["left"], 10.0 - description)

    assert not said(changed(saved_case(name), sinking))


@pytest.mark.parametrize("name", SAVED)
def test_noise_that_shrinks_may_come_below_the_tolerance(name: str) -> None:
    def calming(leaf: dict[str, Any], description: int) -> None:
        if leaf["text"].startswith(("norm <", "val_loss <")):
            value = 1.0 + (-1) ** description * 0.7**description
            number(leaf["compared"]["left"], value if leaf["text"].startswith("val_loss") else 8 * 0.7**description)

    assert not said(changed(saved_case(name), calming))


@pytest.mark.parametrize("name", SAVED)
def test_few_checks_prove_nothing(name: str) -> None:
    """As of a check in each of some long epochs, or at every ten-thousandth step."""
    case = changed(saved_case(name), _rare)
    snapshots = [replace(each, epochs=each.epochs // 1000) for each in case.loop_snapshots]
    assert not said(replace(case, loop_snapshots=tuple(snapshots)))


def _rare(leaf: dict[str, Any], _: int) -> None:
    leaf["every"] = None if leaf.get("every") is None else {**leaf["every"], "rounds": 1_000_000}
