"""What a rule is: a pure function from a Case to findings, with its page and its place in the causal order."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from unstuck.model import Case, Finding, Fix, Question, SeenBy, Severity, Where
from unstuck.rules.remedies import remedy_for
from unstuck.rules.words import sentence

Decide = Callable[[Case], Iterable[Finding | Question]]

HEADINGS = ("What it sees", "Why it matters", "Evidence", "Fix", "When it is wrong")


@dataclass(frozen=True)
class Rule:
    """One possible cause. `page` is the docstring of the rule's module: `explain` and the docs show it."""

    name: str
    family: str
    decide: Decide
    explains: frozenset[str] = frozenset()
    """Rules whose findings are shown beneath this one's, as consequences."""
    explained_within: int | None = None
    """Only what happened at most so many steps before explains its findings."""
    last_resort: bool = False
    """Its findings count only where no other rule of its family has one."""
    disproved_by_end: bool = False
    """It says that the run never ends: a run that finishes normally disproves it."""
    asks_only: bool = False
    """Only an experiment can settle it: during a run it asks for that experiment."""
    gathers: bool = False
    """Its evidence gets better as the run goes on: a later finding replaces the first."""

    def finding(
        self,
        *,
        severity: Severity,
        confidence: float,
        title: str,
        evidence: Iterable[str],
        where: Where,
        fix: str | Fix,
        seen_by: SeenBy = "flight",
        consequences: tuple[str, ...] = (),
        also: tuple[Where, ...] = (),
    ) -> Finding:
        """A finding of this rule. Empty lines of evidence are left out; the title becomes a sentence; beneath the fix
        stands the remedy with which the run can go on."""
        fix = Fix(fix) if isinstance(fix, str) else fix
        return Finding(
            rule=self.name,
            family=self.family,
            severity=severity,
            confidence=confidence,
            title=sentence(title),
            evidence=tuple(line for line in evidence if line),
            where=where,
            fix=fix if fix.diff else replace(fix, diff=remedy_for(self.name, where)),
            seen_by=seen_by,
            consequences=consequences,
            also=also,
        )

    @property
    def page(self) -> str:
        module = inspect.getmodule(self.decide)
        return inspect.cleandoc((module and module.__doc__) or "")

    @property
    def summary(self) -> str:
        """The first line of the page, without the rule's name."""
        first = self.page.partition("\n")[0]
        return first.partition(": ")[2] or first
