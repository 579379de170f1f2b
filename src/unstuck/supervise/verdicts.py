"""What has been said about a run, and what each new diagnosis changes: new, louder, superseded, withdrawn.

Pure: Cases, diagnoses and moments are parameters. Nothing is read or printed here, and it knows no loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from unstuck.families import IN_VAIN
from unstuck.model import Case, Finding, Question
from unstuck.rules import RULES, rule_named
from unstuck.rules.diagnose import LOUDNESS, Diagnosis
from unstuck.supervise import Options

GOES_ON = IN_VAIN | {"pace"}
"""Families of findings about a run that moves: its later steps bear them out, or not."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A finding that was reported, and when."""

    finding: Finding
    at: float
    stalled: int | None = None
    """The process whose standstill it is about: once that one moves again, the finding is withdrawn."""

    def withdrawn(self) -> Verdict:
        return replace(self, finding=replace(self.finding, withdrawn=True, severity="info"))


class Verdicts:
    """Everything reported about one run, from its start to its end."""

    def __init__(self) -> None:
        self.all: list[Verdict] = []
        self.questions: tuple[Question, ...] = ()
        self._scene: Case | None = None
        """The Case that the standing findings rest on: the end of the run must not wash it away."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Standing and withdrawn ones, the loudest first."""
        return tuple(sorted((verdict.finding for verdict in self.all), key=lambda f: LOUDNESS[f.severity]))

    @property
    def diagnosis(self) -> Diagnosis:
        return Diagnosis(self.findings, self.questions)

    def update(self, case: Case, diagnosis: Diagnosis, now: float) -> tuple[Finding, ...]:
        """Take in what the rules say about the Case as it is now; gives what is new, or louder than it was."""
        self.questions = diagnosis.questions
        standing = [verdict.finding for verdict in self.all if not verdict.finding.withdrawn]
        loudness = {_key(finding): LOUDNESS[finding.severity] for finding in standing}
        news = [f for f in diagnosis.findings if LOUDNESS[f.severity] < loudness.get(_key(f), len(LOUDNESS))]
        news = [f for f in news if _counts(f, standing, case)]
        self._withdraw_unsupported(diagnosis.findings)
        self._refresh(diagnosis.findings, case)
        self._supersede(news)
        self.all += [Verdict(f, now, _stalled(case, f) if _stands_still(f) else None) for f in news]
        if news and not (standing and case.outcome == "interrupted"):
            self._scene = case
        return tuple(news)

    def recovered(self, moved: Mapping[int, float]) -> tuple[Finding, ...]:
        """Withdraw what was reported about processes that have moved since. `moved`: when each last did, by pid."""
        return self._withdraw(v for v in self.all if v.stalled is not None and moved.get(v.stalled, 0.0) > v.at)

    def ended_well(self) -> tuple[Finding, ...]:
        """The run came to its own good end: withdraw what said that it stands still, or goes round, forever."""
        return self._withdraw(verdict for verdict in self.all if _disproved_by_end(verdict.finding))

    def case_to_keep(self, case: Case) -> Case:
        """The Case as it was when the standing findings were made, with how the run is now, and how far it has come."""
        if self._scene is None or all(verdict.finding.withdrawn for verdict in self.all):
            return case
        now = {flight.pid: flight for flight in case.flights}
        made = [(was, now.get(was.pid, was)) for was in self._scene.flights]
        return replace(
            self._scene,
            outcome=case.outcome,
            exits=case.exits,
            seconds=case.seconds,
            probes_off=case.probes_off,
            flights=tuple(replace(was, step=late.step, epoch=late.epoch) for was, late in made),
        )

    @property
    def worth_reading(self) -> bool:
        return not all(map(is_quiet, self.findings))

    def reason_to_stop(self, options: Options) -> tuple[str, Finding] | None:
        """The option and the standing finding for which the run has to be stopped."""
        standing = [finding for finding in self.findings if not finding.withdrawn]
        if options.on_hang == "stop":
            for finding in standing:
                if finding.severity == "error" and finding.family not in IN_VAIN:
                    return "--on-hang stop", finding
        for finding in standing:
            warned = finding.severity == "warning" and not _stands_still(finding)  # of a hang only what is certain
            if (options.stop_on and finding.severity == "error") or (options.stop_on == "warning" and warned):
                return f"--stop-on {options.stop_on}", finding
        return None

    def fails(self, fail_on: str | None) -> bool:
        """A standing finding is as loud as `--fail-on` says, or louder."""
        limit = LOUDNESS[fail_on] if fail_on is not None else -1
        return any(not finding.withdrawn and LOUDNESS[finding.severity] <= limit for finding in self.findings)

    # --- parts of an update ----------------------------------------------------------------------------------

    def _withdraw(self, verdicts: Iterable[Verdict]) -> tuple[Finding, ...]:
        chosen = [verdict for verdict in verdicts if not verdict.finding.withdrawn]
        self.all = [verdict.withdrawn() if verdict in chosen else verdict for verdict in self.all]
        return tuple(verdict.finding for verdict in chosen)

    def _withdraw_unsupported(self, found: tuple[Finding, ...]) -> None:
        """Of a training that goes on: what its later steps do not bear out. Mere information is just dropped."""
        supported = {f.rule for f in found} | {line.partition(":")[0] for f in found for line in f.consequences}
        doubtful = [v for v in self.all if v.finding.family in GOES_ON and v.finding.rule not in supported]
        dropped = [v for v in doubtful if v.finding.severity == "info" and not v.finding.withdrawn]
        self.all = [verdict for verdict in self.all if verdict not in dropped]
        self._withdraw(verdict for verdict in doubtful if verdict not in dropped)

    def _refresh(self, found: tuple[Finding, ...], case: Case) -> None:
        """Better evidence for what was reported already, where the rule gathers it as the run goes on."""
        better = {(_key(f), f.severity): f for f in found if (rule := rule_named(f.rule)) and rule.gathers}
        for place, verdict in enumerate(self.all):
            latest = better.get((_key(verdict.finding), verdict.finding.severity))
            if latest is not None and not verdict.finding.withdrawn:
                self.all[place] = replace(verdict, finding=latest)
                self._scene = case

    def _supersede(self, news: list[Finding]) -> None:
        """What is now reported louder, or explained by what is new, need not stand next to it."""
        keys = {_key(finding) for finding in news}
        causes = [f for f in news if f.family != "data" or f.severity != "info"]
        explained = {name for f in causes if (rule := rule_named(f.rule)) for name in rule.explains}
        explained |= {name for f in causes for name in _followers(f)}
        if any(f.family in IN_VAIN and f.severity != "info" for f in news):
            explained |= {rule.name for rule in RULES if rule.last_resort and rule.family in IN_VAIN}
        self.all = [
            verdict
            for verdict in self.all
            if verdict.finding.withdrawn or not (_key(verdict.finding) in keys or verdict.finding.rule in explained)
        ]


def _key(finding: Finding) -> tuple[str, int | None]:
    """Of several ranks, one finding speaks for all: which of them it names may change."""
    return finding.rule, finding.where.pid if finding.where.rank is None else None


def _counts(finding: Finding, standing: list[Finding], case: Case) -> bool:
    """It is news, given what stands already and how the run is."""
    errors = [f for f in standing if f.severity == "error" and f.rule not in _named_beneath(finding)]
    if errors and finding.severity == "error" and case.outcome != "died":
        # The cause is named; its echoes are not news. A run that goes on in vain is no cause of a standstill, though.
        only_in_vain = all(f.family in IN_VAIN for f in errors)
        if not only_in_vain or finding.family in IN_VAIN:
            return False
    if case.outcome != "running" and finding.family == "hang":
        return False  # nothing stands still any more: what there was to say about that was said before
    # Rules about ranks know how these ended, whatever the script above them made of it.
    return case.outcome != "finished" or finding.family == "ranks" or not _disproved_by_end(finding)


def _named_beneath(finding: Finding) -> set[str]:
    """Rules of what follows from this."""
    return {line.partition(":")[0] for line in finding.consequences}


def _followers(finding: Finding) -> set[str]:
    """The same, of what was reported of other ranks."""
    return _named_beneath(finding) if finding.where.rank is not None else set()


def _stalled(case: Case, finding: Finding) -> int | None:
    """The training process whose standstill a finding is about: the one it names, or that one's nearest parent."""
    stalls = {stall.pid: stall for stall in case.stalls if not stall.excuse}
    parents = {process.pid: process.ppid for process in case.looks[-1].processes} if case.looks else {}
    pid = finding.where.pid
    while pid is not None and pid not in stalls:
        pid = parents.pop(pid, None)
    if pid is not None:
        return pid
    return max(stalls, key=lambda pid: stalls[pid].standing, default=None)


def _stands_still(finding: Finding) -> bool:
    """It says that nothing moves: once it does, that is withdrawn."""
    return finding.family == "hang" or (finding.family == "ranks" and _disproved_by_end(finding))


def _disproved_by_end(finding: Finding) -> bool:
    rule = rule_named(finding.rule)
    return rule is not None and rule.disproved_by_end


# --- questions about findings --------------------------------------------------------------------------------


def is_quiet(finding: Finding) -> bool:
    """Kept for the report, but no reason to speak: that a run which ended well might have been trained on, that its
    data is odd, or that it was slow for reasons that are not its own."""
    if finding.severity != "info":
        return False
    rule = rule_named(finding.rule)
    last_resort = finding.family in IN_VAIN and rule is not None and rule.last_resort
    return finding.family in ("data", "pace", "ranks") or last_resort


def as_reported(saved: Diagnosis, fresh: Diagnosis) -> Diagnosis:
    """What a run reported, with the further places that a saved report leaves out and its Case still shows."""
    places = {(f.rule, f.where.pid, f.where.line): f.also for f in fresh.findings}
    findings = tuple(replace(f, also=places.get((f.rule, f.where.pid, f.where.line), ())) for f in saved.findings)
    return replace(fresh, findings=findings)
