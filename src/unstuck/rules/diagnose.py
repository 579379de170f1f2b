"""Apply every rule to a Case: causes first, what they explain beneath them, never a rule's own fault outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unstuck.families import IN_VAIN
from unstuck.model import Case, Finding, Question
from unstuck.rules.rule import Rule

LEARNS_NOT = IN_VAIN - {"data"}
"""Families that share their last resorts. What is odd in the data need not be why nothing is learned."""
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
    said: list[Finding] = []
    questions: list[Question] = []
    broken: list[tuple[str, str]] = []
    for rule in rules:
        try:
            for word in rule.decide(case):
                if isinstance(word, Finding):
                    said.append(word)
                else:
                    questions.append(word)
        except Exception as error:
            broken.append((f"rule {rule.name}", f"{type(error).__name__}: {error}"))
    by_name = {rule.name: rule for rule in rules}
    order = {rule.name: place for place, rule in enumerate(rules)}
    causes = _fold_consequences(_drop_last_resorts(said, by_name), by_name)
    causes.sort(key=lambda f: (LOUDNESS[f.severity], f.withdrawn, -f.confidence, order[f.rule]))
    return Diagnosis(tuple(causes), tuple(questions), tuple(broken))


def _drop_last_resorts(said: list[Finding], rules: dict[str, Rule]) -> list[Finding]:
    spoke = {f.family for f in said if not rules[f.rule].last_resort}
    if spoke & LEARNS_NOT:
        spoke |= LEARNS_NOT  # numbers that break are why it does not learn
    return [f for f in said if not rules[f.rule].last_resort or f.family not in spoke]


def _fold_consequences(said: list[Finding], rules: dict[str, Rule]) -> list[Finding]:
    kept = [f for f in said if not any(_explains(cause, f, rules) for cause in said)]
    folded = []
    for cause in kept:
        beneath = [f"{f.rule}: {f.title}" for f in said if _explains(cause, f, rules)]
        folded.append(replace(cause, consequences=(*cause.consequences, *beneath)))
    return folded


def _explains(cause: Finding, other: Finding, rules: dict[str, Rule]) -> bool:
    """Information about the data explains nothing that is louder: there the training copes with it."""
    quiet = cause.family == "data" and LOUDNESS[cause.severity] > LOUDNESS[other.severity]
    return other.rule in rules[cause.rule].explains and not quiet
