"""Apply every rule to a Case: causes first, what they explain beneath them; a rule that raises hides no other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unstuck.families import NOT_LEARNING
from unstuck.model import Case, Finding, Question
from unstuck.rules.across_ranks import across_ranks
from unstuck.rules.library_words import in_library_words
from unstuck.rules.notebook_cells import in_cells
from unstuck.rules.rank_sample import thinned
from unstuck.rules.rule import Rule

LOUDNESS = {"error": 0, "warning": 1, "info": 2}


@dataclass(frozen=True)
class Diagnosis:
    findings: tuple[Finding, ...] = ()
    questions: tuple[Question, ...] = ()
    probes_off: tuple[tuple[str, str], ...] = ()


def diagnose(case: Case, rules: Sequence[Rule] | None = None) -> Diagnosis:
    """Findings sorted, the primary cause first."""
    if rules is None:
        from unstuck.rules import RULES

        rules = RULES
    findings: list[Finding] = []
    questions: list[Question] = []
    raised: list[tuple[str, str]] = []
    few = thinned(case)
    for rule in rules:
        try:
            for result in rule.decide(case if rule.family == "ranks" else few):
                if isinstance(result, Finding):
                    findings.append(result)
                else:
                    questions.append(result)
        except Exception as error:
            raised.append((f"rule {rule.name}", f"{type(error).__name__}: {error}"))
    by_name = {rule.name: rule for rule in rules}
    order = {rule.name: index for index, rule in enumerate(rules)}
    if not case.scans:  # each sample of a scan is a matter of its own
        findings = _drop_last_resorts(findings, by_name)
    causes = _fold_consequences(across_ranks(case, findings), by_name)
    causes.sort(key=lambda f: (LOUDNESS[f.severity], f.withdrawn, -f.confidence, order[f.rule]))
    causes = [in_cells(case, in_library_words(case, cause)) for cause in causes]
    return Diagnosis(tuple(causes), tuple(questions), tuple(raised))


def _drop_last_resorts(findings: list[Finding], rules: dict[str, Rule]) -> list[Finding]:
    explained = {f.family for f in findings if not rules[f.rule].last_resort}
    if explained & NOT_LEARNING:
        explained |= NOT_LEARNING  # NaN is why it does not learn
    return [f for f in findings if not rules[f.rule].last_resort or f.family not in explained]


def _fold_consequences(findings: list[Finding], rules: dict[str, Rule]) -> list[Finding]:
    causes = [f for f in findings if not any(_explains(cause, f, rules) for cause in findings)]
    return [
        replace(
            cause,
            consequences=(
                *cause.consequences,
                *(f"{f.rule}: {f.title}" for f in findings if _explains(cause, f, rules)),
            ),
        )
        for cause in causes
    ]


def _explains(cause: Finding, other: Finding, rules: dict[str, Rule]) -> bool:
    """A remark about the data explains nothing louder than itself: there the training copes with it."""
    quieter = cause.family == "data" and LOUDNESS[cause.severity] > LOUDNESS[other.severity]
    return other.rule in rules[cause.rule].explains and not quieter and _soon_after(cause, other, rules)


def _soon_after(cause: Finding, other: Finding, rules: dict[str, Rule]) -> bool:
    within, first, then = rules[other.rule].explained_within, cause.where.step, other.where.step
    if within is None or first is None or then is None:
        return within is None
    return 0 <= then - first <= within
