"""The page of a finding about learning shows the loss that it is about."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tests.unit.rules.record_cases import saved_case

from unstuck.model import Case, Finding, Fix, Where
from unstuck.recorder.records.learning import Learning, Loss, LossHead
from unstuck.recorder.records.numerics import Spike
from unstuck.report.curve import curve_of
from unstuck.report.json_report import report
from unstuck.report.screen import Screen
from unstuck.report.terminal import render
from unstuck.rules.diagnose import Diagnosis, diagnose
from unstuck.serial import dump_text, from_plain, to_plain

FINDING = Finding(
    rule="learning-rate-too-high",
    family="learning",
    severity="error",
    confidence=0.9,
    title="The learning rate is too high",
    evidence=("it is",),
    where=Where("train.py", 5, "main", 7, step=12),
    fix=Fix("Lower it."),
    seen_by="flight",
)


def site(line: int) -> tuple[str, int, str]:
    return ("/home/train.py", line, "main")


def loss(line: int, values: list[float], **more: Any) -> Loss:
    plain: dict[str, Any] = {"site": site(line), "count": len(values), "points": list(enumerate(values))}
    return Loss(**{**plain, "first": values[:32], "recent": values[-32:], "last": values[-1], **more})


def case(*losses: Loss, **more: Any) -> Case:
    learning = Learning(pid=7, steps=40, backwards=40, losses=list(losses), **more)
    return Case(command=("python", "train.py"), cwd="/home", learnings=(learning,))


def show(case: Case, *findings: Finding, unicode: bool = True, width: int = 80) -> str:
    return render(case, Diagnosis(findings), Screen(False, width, unicode))


FALLING = [2.0 - 0.04 * n for n in range(40)]


def test_the_loss_comes_between_the_evidence_and_the_place() -> None:
    text = show(case(loss(30, FALLING)), FINDING)
    assert text.index("Evidence") < text.index("Loss · train.py:30\n") < text.index("▲ step 12") < text.index("Where")


def test_only_for_these_families_and_enough_points() -> None:
    hang = dataclasses.replace(FINDING, family="hang", rule="waits-on-io")
    assert "Loss ·" not in show(case(loss(30, FALLING)), hang)
    assert "Loss ·" not in show(case(loss(30, FALLING[:7])), FINDING)
    assert "Loss ·" in show(case(loss(30, FALLING[:8])), FINDING)
    assert "Loss ·" not in show(Case(), FINDING)
    withdrawn = dataclasses.replace(FINDING, withdrawn=True, severity="info")
    assert "Loss ·" not in show(case(loss(30, FALLING)), withdrawn)


def test_it_is_the_loss_of_the_findings_line_else_the_one_with_most_values() -> None:
    both = case(loss(5, FALLING[:20]), loss(9, FALLING))
    assert "Loss · train.py:5\n" in show(both, FINDING)
    elsewhere = dataclasses.replace(FINDING, where=dataclasses.replace(FINDING.where, line=77))
    assert "Loss · train.py:9\n" in show(both, elsewhere)
    also = dataclasses.replace(elsewhere, also=(Where("/home/train.py", 5, "main", 7),))
    assert "Loss · train.py:5\n" in show(both, also)
    head = LossHead(op="mse", times=9, site=site(77), called=site(5))
    assert "Loss · train.py:5\n" in show(case(loss(5, FALLING[:20]), loss(9, FALLING), heads=[head]), elsewhere)


def test_each_loss_is_drawn_once() -> None:
    other = dataclasses.replace(FINDING, rule="loss-oscillates", severity="warning")
    assert show(case(loss(30, FALLING)), FINDING, other).count("Loss ·") == 1
    apart = dataclasses.replace(other, where=dataclasses.replace(FINDING.where, line=9))
    assert show(case(loss(5, FALLING), loss(9, FALLING)), FINDING, apart).count("Loss ·") == 2
    hang = dataclasses.replace(FINDING, family="hang", rule="waits-on-io")
    assert show(case(loss(30, FALLING)), hang, other).count("Loss ·") == 1


def test_a_log_scale_is_said() -> None:
    assert "Loss · train.py:30 · log scale\n" in show(case(loss(30, [10.0**n for n in range(9)])), FINDING)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"nonfinite": 4, "nonfinite_step": 40}, "NaN/Inf from step 40 ✖"),
        ({"nonfinite": 1, "nonfinite_step": 20}, "✖ NaN/Inf at step 20"),
        ({"nonfinite": 4, "nonfinite_step": 3}, "✖ NaN/Inf 4 times, first at step 3"),
    ],
)
def test_nan_is_marked(more: dict[str, Any], said: str) -> None:
    text = show(case(loss(30, FALLING, **more)), FINDING)
    assert said in text
    assert "▲ step 12" in text
    assert said not in show(case(loss(30, FALLING, **more)), FINDING, unicode=False)


def test_the_step_of_the_finding_is_marked_once() -> None:
    found = dataclasses.replace(FINDING, where=dataclasses.replace(FINDING.where, step=40))
    assert "▲" not in show(case(loss(30, FALLING, nonfinite=4, nonfinite_step=40)), found)
    told_later = show(case(loss(30, FALLING)), found)
    assert "step 40 ▲" in told_later


def test_means_do_not_hide_the_first_value_the_last_ones_and_spikes() -> None:
    means = [(4 * n + 3, 1.0) for n in range(20)]
    spike = Spike(site=site(30), step=31, value=9.0)
    series = loss(30, [1.0], points=means, stride=4, count=82, first=[2.0, 1.0], recent=[1.0] * 30 + [3.0, 4.0])
    found = curve_of(case(series, spikes=[spike]), FINDING)
    assert found is not None
    unlike = [point for point in found.points if point[1] != 1.0]
    assert unlike == [(0.0, 2.0), (31.0, 9.0), (80.0, 3.0), (81.0, 4.0)]
    assert "means of 4 values" in show(case(series), FINDING)


def test_saved_infinities_do_no_harm() -> None:
    broken = to_plain(case(loss(30, [*FALLING, float("inf"), float("nan")])))
    assert broken["learnings"][0]["losses"][0]["last"] == "nan"
    assert "Loss ·" in show(from_plain(Case, broken), FINDING)


@pytest.mark.parametrize("unicode", [True, False])
@pytest.mark.parametrize("width", [40, 60, 120])
def test_it_keeps_to_the_width(width: int, unicode: bool) -> None:
    text = show(case(loss(30, FALLING, nonfinite=4, nonfinite_step=40)), FINDING, width=width, unicode=unicode)
    assert "Loss" in text
    assert max(map(len, text.splitlines())) <= width
    assert unicode or text.isascii()


def test_a_saved_case_shows_it_and_the_json_report_does_not() -> None:
    saved = saved_case("pair-distance-root")
    diagnosis = diagnose(saved)
    text = render(saved, diagnosis, Screen(), live=False)
    assert "Loss · pair-distance-root.py:45\n" in text
    assert "NaN/Inf from step 71 ✖" in text
    assert not any(0x2800 <= ord(c) < 0x2900 for c in dump_text(report(saved, diagnosis)))
