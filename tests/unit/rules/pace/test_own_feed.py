"""A training that makes its batches without a loader: what must not be taken for it."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.rules.record_cases import saved_case
from unstuck.model import Case, Finding, SeenStack
from unstuck.rules.pace import starved_for_data

WAITS = saved_case("pace-queue-of-one-reader")


def said(case: Case) -> list[Finding]:
    return [each for each in starved_for_data.decide(case) if isinstance(each, Finding)]


def with_stacks(*stacks: SeenStack) -> Case:
    return replace(WAITS, strains=tuple(replace(strain, stacks=stacks) for strain in WAITS.strains))


def test_names_the_line_of_the_thread_that_makes_the_batch() -> None:
    (finding,) = said(WAITS)
    assert finding.severity == "warning"
    assert "another thread" in finding.evidence[1]


def test_a_model_on_the_line_is_no_batch_maker() -> None:
    """A policy that plays, a teacher that is asked."""
    stacks = [replace(stack, model=stack.model or stack.waits) for stack in WAITS.strains[-1].stacks]
    assert not said(with_stacks(*stacks))


def test_validation_between_steps_is_not_on_the_way_to_the_loss() -> None:
    stacks = [
        replace(stack, frames=tuple((file, line + 1000, name) for file, line, name in stack.frames))
        for stack in WAITS.strains[-1].stacks
    ]
    assert not said(with_stacks(*stacks))


def test_one_long_wait_among_many_steps_is_no_pace() -> None:
    trends = [
        replace(trend, steps=tuple(replace(step, seconds=step.backward + step.optimizer) for step in trend.steps))
        for trend in WAITS.trends
    ]
    assert not said(replace(WAITS, trends=tuple(trends)))


def test_too_few_steps_while_it_was_watched() -> None:
    assert not said(replace(WAITS, strains=tuple(replace(strain, steps=3) for strain in WAITS.strains)))
