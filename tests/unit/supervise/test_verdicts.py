"""What is new, louder, superseded or withdrawn, from hand-made Cases and findings under a made clock."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.supervise.findings import finding
from unstuck.model import Case, Exit, Finding, Flight, Look, Outcome, Process, Severity, Stall
from unstuck.rules.diagnose import Diagnosis
from unstuck.supervise.verdicts import Verdicts, as_reported, is_quiet

MAIN, WORKER, OTHER = 10, 11, 20
STILL = Case(
    stalls=(Stall(MAIN, "data", 0.0, 12.0), Stall(OTHER, "data", 0.0, 3.0)),
    looks=(Look(12.0, (Process(MAIN, 1), Process(WORKER, MAIN), Process(OTHER, 1))),),
)
HANG = finding("hang", rule="sample-spins", pid=WORKER)
SLOW, RISK = finding("learning", "warning"), finding("learning", "info")


def say(verdicts: Verdicts, *findings: Finding, case: Case = STILL, now: float = 100.0) -> tuple[Finding, ...]:
    return verdicts.update(case, Diagnosis(findings), now)


def ended(outcome: Outcome) -> Case:
    return replace(STILL, outcome=outcome, stalls=(), exits=(Exit(MAIN, 0),))


def rules(findings: tuple[Finding, ...]) -> list[tuple[str, bool]]:
    return [(f.rule, f.withdrawn) for f in findings]


def test_the_same_is_reported_once() -> None:
    verdicts = Verdicts()
    assert say(verdicts, HANG) == (HANG,)
    assert say(verdicts, HANG, now=101.0) == ()
    assert verdicts.findings == (HANG,)


def test_the_same_rule_about_another_process_is_new() -> None:
    verdicts = Verdicts()
    say(verdicts, finding("pace", "warning"))
    assert say(verdicts, finding("pace", "warning"), finding("pace", "warning", pid=5))[0].where.pid == 5


def test_louder_takes_the_place_of_what_was_said() -> None:
    verdicts = Verdicts()
    warning = replace(HANG, severity="warning")
    say(verdicts, warning)
    assert say(verdicts, HANG) == (HANG,)
    assert verdicts.findings == (HANG,)


def test_quieter_is_no_news() -> None:
    verdicts = Verdicts()
    say(verdicts, HANG)
    assert say(verdicts, replace(HANG, severity="warning")) == ()


def test_echoes_of_a_named_cause_are_no_news_but_a_death_is() -> None:
    verdicts = Verdicts()
    say(verdicts, HANG)
    echo = finding("hang", rule="main-spins", pid=MAIN)
    assert say(verdicts, HANG, echo) == ()
    assert say(verdicts, finding("death"), case=ended("died")) == (finding("death"),)


def test_a_run_in_vain_is_no_cause_of_a_standstill() -> None:
    verdicts = Verdicts()
    nan = finding("numerics")
    say(verdicts, nan)
    assert say(verdicts, nan, HANG, finding("learning")) == (HANG,)


def test_what_is_explained_by_the_new_goes() -> None:
    verdicts = Verdicts()
    resort = finding("learning", "warning", rule="no-better-than-constant")
    say(verdicts, resort)
    say(verdicts, finding("numerics"), resort)
    assert rules(verdicts.findings) == [("a-numerics", False)]


def test_a_cause_found_later_takes_the_place_of_what_follows_from_it() -> None:
    verdicts = Verdicts()
    rate, gaps = finding("learning", rule="learning-rate-too-high"), finding("data", rule="missing-values")
    say(verdicts, rate, replace(gaps, severity="info"))
    cause = replace(gaps, consequences=("learning-rate-too-high: it is too high",))
    say(verdicts, cause, case=ended("finished"))
    assert verdicts.findings == (cause,)


@pytest.mark.parametrize(
    ("said", "found", "left"),
    [
        (SLOW, SLOW, [("a-learning", False)]),
        (SLOW, None, [("a-learning", True)]),
        (RISK, None, []),
        (finding("pace", "warning"), None, [("a-pace", True)]),
        (HANG, None, [("sample-spins", False)]),
        (SLOW, replace(finding("death"), consequences=("a-learning: it is so",)), [("a-learning", False)]),
    ],
)
def test_later_steps_decide(said: Finding, found: Finding | None, left: list[tuple[str, bool]]) -> None:
    verdicts = Verdicts()
    say(verdicts, said)
    news = say(verdicts, *([found] if found else []))
    assert [entry for entry in rules(verdicts.findings) if entry[0] == said.rule] == left
    assert bool(news) is (found is not None and found is not said)


def test_a_standstill_that_moves_again_is_withdrawn() -> None:
    verdicts = Verdicts()
    say(verdicts, HANG, now=100.0)
    assert verdicts.recovered({MAIN: 88.0, OTHER: 120.0}) == (), "the worker's own training has not moved"
    assert verdicts.recovered({MAIN: 103.5}) == (HANG,)
    assert verdicts.recovered({MAIN: 104.0}) == (), "once"
    (left,) = verdicts.findings
    assert (left.withdrawn, left.severity) == (True, "info")


def test_after_recovery_the_same_may_be_said_again() -> None:
    verdicts = Verdicts()
    say(verdicts, HANG, now=100.0)
    verdicts.recovered({MAIN: 103.5})
    assert say(verdicts, HANG, now=200.0) == (HANG,)
    assert rules(verdicts.findings) == [("sample-spins", False), ("sample-spins", True)]


def test_who_is_nowhere_in_the_tree_belongs_to_the_longest_standstill() -> None:
    verdicts = Verdicts()
    say(verdicts, replace(HANG, where=replace(HANG.where, pid=999)))
    assert verdicts.recovered({OTHER: 120.0}) == ()
    assert len(verdicts.recovered({MAIN: 120.0})) == 1


def test_a_good_end_disproves_what_never_ends() -> None:
    verdicts = Verdicts()
    say(verdicts, HANG, finding("pace", "warning"))
    assert verdicts.ended_well() == (HANG,)
    assert rules(verdicts.findings) == [("a-pace", False), ("sample-spins", True)]


def test_after_the_end_no_standstill_is_news() -> None:
    for outcome in ("finished", "died", "interrupted"):
        assert say(Verdicts(), HANG, case=ended(outcome)) == ()
    loop = finding("loop", rule="endless-epoch")
    assert say(Verdicts(), loop, case=ended("finished")) == ()
    assert say(Verdicts(), loop, case=ended("died")) == (loop,)


def test_the_scene_of_a_finding_is_kept_with_how_the_run_ended() -> None:
    verdicts = Verdicts()
    say(verdicts, HANG)
    interrupted = replace(ended("interrupted"), seconds=99.0)
    say(verdicts, finding("death"), case=interrupted)
    kept = verdicts.case_to_keep(interrupted)
    assert (kept.stalls, kept.looks) == (STILL.stalls, STILL.looks)
    assert (kept.outcome, kept.seconds, kept.exits) == ("interrupted", 99.0, interrupted.exits)


def test_the_scene_of_a_finding_is_kept_with_how_far_the_run_has_come() -> None:
    verdicts = Verdicts()
    say(verdicts, SLOW, case=replace(STILL, flights=(Flight(MAIN, step=325, epoch=11, batch=6), Flight(OTHER, step=7))))
    finished = replace(ended("finished"), flights=(Flight(MAIN, step=384, epoch=12),))
    main, other = verdicts.case_to_keep(finished).flights
    assert (main.step, main.epoch, main.batch, other.step) == (384, 12, 6, 7)


def test_without_a_standing_finding_the_last_case_is_kept() -> None:
    verdicts = Verdicts()
    finished = ended("finished")
    assert verdicts.case_to_keep(finished) is finished
    say(verdicts, HANG)
    verdicts.ended_well()
    assert verdicts.case_to_keep(finished) is finished


def test_evidence_that_is_gathered_takes_the_place_of_the_first() -> None:
    from unstuck.rules import RULES

    rule = next(rule for rule in RULES if rule.gathers)
    first = finding(rule.family, "warning", rule=rule.name)
    better = replace(first, evidence=("seen 12 times",))
    verdicts = Verdicts()
    say(verdicts, first)
    assert say(verdicts, better) == ()
    assert verdicts.findings == (better,)


@pytest.mark.parametrize(
    ("rule", "severity", "quiet"),
    [
        ("still-improving", "info", True),
        ("no-better-than-constant", "info", True),
        ("no-better-than-constant", "warning", False),
        ("loss-spike", "info", False),
    ],
)
def test_last_resorts_are_kept_for_the_report(rule: str, severity: Severity, quiet: bool) -> None:
    assert is_quiet(finding("learning", severity, rule=rule)) is quiet


def test_a_saved_report_gets_its_further_places_back() -> None:
    place = replace(HANG.where, line=40)
    shown = as_reported(Diagnosis((HANG,)), Diagnosis((replace(HANG, also=(place,)), SLOW)))
    assert [(f.rule, f.also) for f in shown.findings] == [("sample-spins", (place,))]
