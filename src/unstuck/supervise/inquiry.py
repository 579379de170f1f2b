"""What happens once something stands still: looks from outside, a Case made of them, rules applied, findings kept."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from unstuck.families import IN_VAIN
from unstuck.model import Case, Exit, Finding, Flight, Look, Outcome, Pace, PathFact, Question, Stall, Times
from unstuck.observer.flights import read_flight, read_records, unseen, with_crash
from unstuck.observer.gauge import one_each
from unstuck.observer.journals import by_field
from unstuck.observer.look import Observer
from unstuck.recorder import layout as at
from unstuck.recorder.cores import allowed
from unstuck.rules import RULES, rule_named
from unstuck.rules.diagnose import LOUDNESS, diagnose
from unstuck.supervise.ending import scheduler
from unstuck.supervise.excuses import excuse
from unstuck.supervise.stillness import still_since
from unstuck.supervise.watch import Watch

LOOKS_KEPT = 8


@dataclass(slots=True)
class Said:
    """A finding, and the standstill it was about: if that one moves again, the finding is withdrawn."""

    finding: Finding
    stalled: int | None
    at: float


def times(stall_after: float | None) -> Times:
    """Default times, or all of them replaced by one."""
    if stall_after is None:
        return Times()
    s = stall_after
    return Times(suspect=s, proven=s, busy=s, busy_ratio=0.0, silent=s, silent_ratio=0.0)


class Inquiry:
    """Everything known of the standstill, and the Case it makes."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.times = times(watch.options.stall_after)
        folder = watch.hangar.folder
        self.observer = Observer(watch.root, flight_dir=Path(folder) if folder else None)
        self.looks: list[Look] = []
        self.said: list[Said] = []
        self.questions: tuple[Question, ...] = ()
        self.flights: dict[int, Flight] = {}
        self._paths: dict[str, PathFact] = {}
        self._stalled: int | None = None
        self._frozen: tuple[Stall, ...] | None = None
        self._scene: Case | None = None
        """The Case that the standing findings rest on: the end of the run must not wash it away."""

    # --- looking -----------------------------------------------------------------------------------------

    def note_flights(self) -> None:
        """Keep what the processes wrote, as of now: at Ctrl-C it is too late to read it."""
        if self._frozen is not None:
            return
        flights = {}
        for gauge in self.watch.hangar.open.values():
            hand = self.watch.clock.hands.get(gauge.pid)
            flight = read_flight(gauge, alive=True)
            flights[gauge.pid] = replace(self._roled(flight), moved=hand.moved if hand else 0.0)
        self.flights = flights

    def _roled(self, flight: Flight) -> Flight:
        return replace(flight, role="main") if flight.pid == self.watch.root and flight.role == "unknown" else flight

    def look(self, pid: int) -> bool:
        """Look at the tree from outside, then let the rules speak. True if they found something new."""
        self.note_flights()
        self._stalled = pid
        try:
            look = self.observer.look(stacks=True, flights=self.flights)
            self._try_paths(look)
        except Exception as fault:
            self.watch.off("observer", fault)
            self.watch.clock.looked(pid)
            return False
        self.looks = [*self.looks, look][-LOOKS_KEPT:]
        self._note_blindness(pid)
        for each in self.watch.clocked():  # one look shows the whole tree
            if each == pid or self.watch.clock.due(each):
                self.watch.clock.looked(each, excuse(look, each))
        return self.think()

    def _note_blindness(self, pid: int) -> None:
        """py-spy sees nothing twice running: a single time may be bad luck."""
        last = [p.stacks_missing for look in self.looks[-2:] for p in look.processes if p.pid == pid]
        if len(last) == 2 and all(why.startswith("py-spy: ") for why in last):
            self.watch.probes_off.setdefault("py-spy", last[1].removeprefix("py-spy: "))

    def _try_paths(self, look: Look) -> None:
        """Try from outside what the processes keep trying, so that a rule can say what comes back."""
        for flight in self.flights.values():
            target = flight.attempt_target
            if flight.attempts and ("/" in target or "." in target):
                fact = self.observer.path_fact(os.path.join(_cwd_of(flight.pid), target))
                self._paths[target] = replace(fact, path=target)
        for fact in self.observer.polled_paths(look):
            self._paths[fact.expression] = fact

    @property
    def at_prompt(self) -> bool:
        """Somebody is being asked at the terminal: what stands there must stay readable."""
        threads = [t for p in self.looks[-1].processes for t in p.threads] if self.looks else []
        return any(t.wait is not None and t.wait.kind == "terminal-read" for t in threads)

    # --- thinking ----------------------------------------------------------------------------------------

    def think(self, outcome: Outcome = "running", exits: tuple[Exit, ...] = ()) -> bool:
        """Apply the rules to the Case as it stands. True if they found something new."""
        case = self.case(outcome, exits)
        try:
            diagnosis = diagnose(case)
        except Exception as fault:
            self.watch.off("rules", fault)
            return False
        self.questions = diagnosis.questions
        for probe, why in diagnosis.probes_off:
            self.watch.probes_off.setdefault(probe, why)
        standing = [said.finding for said in self.said if not said.finding.withdrawn]
        known = {(f.rule, f.where.pid): LOUDNESS[f.severity] for f in standing}
        new = [f for f in diagnosis.findings if LOUDNESS[f.severity] < known.get((f.rule, f.where.pid), 9)]
        errors = [f for f in standing if f.severity == "error"]
        if errors and outcome != "died":  # the cause is named; its echoes are not news
            only_in_vain = all(f.family in IN_VAIN for f in errors)  # that is no cause of a standstill
            new = [f for f in new if f.severity != "error" or (only_in_vain and f.family not in IN_VAIN)]
        if outcome != "running":  # nothing stands still any more: what was said of that was said before
            new = [f for f in new if f.family != "hang"]
        if outcome == "finished":
            new = [f for f in new if not _never_ends(f)]
        now = time.monotonic()
        self._disown(diagnosis.findings)
        self._refresh(diagnosis.findings, case)
        self._supersede(new)
        self.said.extend(Said(f, self._stalled if f.family == "hang" else None, now) for f in new)
        if new and not (standing and outcome == "interrupted"):
            self._scene = case
        return not all(map(is_quiet, new))

    def _disown(self, found: tuple[Finding, ...]) -> None:
        """What was said of a training that goes on, and its later steps do not bear out; information just goes."""
        borne_out = {f.rule for f in found} | {line.partition(":")[0] for f in found for line in f.consequences}
        goes_on = (*IN_VAIN, "pace")
        doubtful = [s for s in self.said if s.finding.family in goes_on and s.finding.rule not in borne_out]
        self._withdraw([s for s in doubtful if s.finding.severity != "info"])
        self.said = [s for s in self.said if s.finding.withdrawn or s not in doubtful]

    def _refresh(self, found: tuple[Finding, ...], case: Case) -> None:
        """Better evidence for what was said already, where the rule gathers it as the run goes on."""
        latest = {(f.rule, f.where.pid, f.severity): f for f in found if (rule := rule_named(f.rule)) and rule.gathers}
        for said in self.said:
            better = latest.get((said.finding.rule, said.finding.where.pid, said.finding.severity))
            if better is not None and not said.finding.withdrawn:
                said.finding, self._scene = better, case

    def _supersede(self, new: list[Finding]) -> None:
        """What is now said louder, or explained by what is new, need not stand beside it."""
        said = {(f.rule, f.where.pid) for f in new}
        causes = [f for f in new if f.family != "data" or f.severity != "info"]
        explained = {name for f in causes if (rule := rule_named(f.rule)) for name in rule.explains}
        if any(f.family in IN_VAIN and f.severity != "info" for f in new):
            explained |= {rule.name for rule in RULES if rule.last_resort and rule.family in IN_VAIN}
        self.said = [
            old
            for old in self.said
            if old.finding.withdrawn
            or ((old.finding.rule, old.finding.where.pid) not in said and old.finding.rule not in explained)
        ]

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(sorted((said.finding for said in self.said), key=lambda f: LOUDNESS[f.severity]))

    def withdraw_recovered(self) -> bool:
        """A stall that moved again is withdrawn, and said so."""
        moved = [said for said in self._standing() if self._moved_since(said)]
        loud = any(said.finding.severity != "info" for said in moved)
        self._withdraw(moved)
        return loud

    def withdraw_disproved(self) -> bool:
        """The run came to its own good end: nothing stood still, or went round, for ever."""
        standing = [said for said in self.said if not said.finding.withdrawn and _never_ends(said.finding)]
        self._withdraw(standing)
        return bool(standing)

    def _standing(self) -> Iterator[Said]:
        return (said for said in self.said if said.stalled is not None and not said.finding.withdrawn)

    def _moved_since(self, said: Said) -> bool:
        hand = self.watch.clock.hands.get(said.stalled) if said.stalled is not None else None
        return hand is not None and hand.moved > said.at

    @staticmethod
    def _withdraw(recovered: list[Said]) -> None:
        for said in recovered:
            said.finding = replace(said.finding, withdrawn=True, severity="info")

    # --- Ctrl-C ------------------------------------------------------------------------------------------

    def freeze(self) -> None:
        """Keep the standstill as it is now; from here on the tree unwinds."""
        hands = self.watch.clock.hands
        if not self.flights or any(f.read_at < hands[pid].moved for pid, f in self.flights.items() if pid in hands):
            self.note_flights()  # there is none, or it is of a time before the standstill
        self._frozen = self.stalls()

    def thaw(self) -> None:
        """The run goes on after all."""
        self._frozen = None

    def explain_interrupt(self) -> bool:
        """The looks at the standstill that it ended, and the rules speak."""
        if not self._frozen:
            return self.think() if self.watch.hangar.news else False  # it moved: then its own facts may tell
        since = min(stall.since for stall in self._frozen)
        self.looks = [look for look in self.looks if look.at >= since]
        if not any(look.stacks for look in self.looks):
            self.looks.append(unseen(self.flights, self.watch.root))
        return self.think()

    # --- a death ------------------------------------------------------------------------------------------

    def explain_death(self, exits: tuple[Exit, ...]) -> bool:
        """The run died: what it left behind is the Case, and the rules speak. True if they found something new."""
        self.note_flights()  # beside a notebook or under a launcher some still live
        return self.think("died", exits)

    def explain_end(self, exits: tuple[Exit, ...]) -> bool:
        """A signal that came through us ended the run: who sent it is worth a word, beside what was said before."""
        return self.think("interrupted", exits)

    # --- the Case ----------------------------------------------------------------------------------------

    def stalls(self) -> tuple[Stall, ...]:
        if self._frozen is not None:
            return self._frozen
        found = (self._stall(pid) for pid in self.watch.clocked())
        return tuple(stall for stall in found if stall is not None)

    def _pace(self, flight: Flight) -> Pace:
        pace = flight.paces.get(flight.phase, Pace())
        seen = self.watch.longest.get((flight.pid, at.PHASES.index(flight.phase)), 0.0)
        return replace(pace, longest=max(pace.longest, seen))

    def _stall(self, pid: int) -> Stall | None:
        hand, flight = self.watch.clock.hands.get(pid), self.flights.get(pid)
        if hand is None or hand.standing <= 0:
            return None
        pace = Pace() if flight is None else self._pace(flight)
        return Stall(
            pid=pid,
            phase="start" if flight is None else flight.phase,
            since=hand.moved,
            standing=hand.standing,
            pace=pace,
            seams=flight is not None and flight.phase != "start",
            excuse=hand.excuse,
            still=still_since(tuple(look for look in self.looks if look.at >= hand.moved), pid),
            suspect=self.watch.clock.suspects(pid, pace.p99, pace.count, self.watch.interrupted),
        )

    def last_case(self, outcome: Outcome, exits: tuple[Exit, ...]) -> Case:
        """The Case to keep: as it stood when the standing findings were made, with how the run ended."""
        now = self.case(outcome, exits)
        if self._scene is None or all(said.finding.withdrawn for said in self.said):
            return now
        return replace(self._scene, outcome=outcome, exits=exits, seconds=now.seconds, probes_off=now.probes_off)

    def case(self, outcome: Outcome = "running", exits: tuple[Exit, ...] = ()) -> Case:
        watch, now = self.watch, time.monotonic()
        living = {gauge.pid for gauge in watch.hangar.open.values()}
        gauges = [*watch.hangar.dead, *watch.hangar.open.values()]
        chosen = one_each(gauges)
        dead = [
            with_crash(self._roled(read_flight(g, alive=False)), g.beside(at.SIGNALS))
            for g in watch.hangar.dead
            if g in chosen and (g.pid not in self.flights or outcome != "running")
        ]
        gone = {flight.pid for flight in dead}
        current = [f for f in self.flights.values() if f.pid not in gone or f.pid in living]
        said = by_field(record for gauge in gauges for record in read_records(gauge))
        return Case(
            command=watch.command,
            cwd=_cwd(),
            now=now,
            clock_offset=time.time() - now,
            seconds=now - watch.began,
            outcome=outcome,
            interrupted=watch.interrupted,
            root=watch.root,
            stdin=watch.stdin,
            exits=exits,
            stalls=self.stalls(),
            times=self.times,
            looks=tuple(self.looks),
            flights=(*current, *dead),
            paths=tuple(self._paths.values()),
            memory=watch.memory.curves(),
            groups=watch.memory.groups(),
            trends=watch.trend.trends(),
            strains=tuple(watch.starving.strains),
            copies=watch.pages.copies(),
            senders=tuple(watch.senders),
            probes_off=(*watch.probes_off.items(), *watch.hangar.probes_off()),
            overhead=sum(int(g.words[at.W_STEP]) * STEP_COST for g in gauges if g.pid == watch.root)
            + sum(learning.cost for learning in said.get("learnings", ()) if learning.pid == watch.root),
            machine=machine(),
            **said,
        )


def is_quiet(finding: Finding) -> bool:
    """Kept for the report, but no reason to speak: that a run which ended well might have been trained on, that its
    data is odd, or that it was slow for reasons that are not its own."""
    if finding.severity != "info":
        return False
    rule = rule_named(finding.rule)
    last = finding.family in IN_VAIN and rule is not None and rule.last_resort
    return finding.family in ("data", "pace") or last


def _never_ends(finding: Finding) -> bool:
    rule = rule_named(finding.rule)
    return rule is not None and rule.disproved_by_end


STEP_COST = 48e-6
"""Seconds the hooks take in one step, as the bench measures it; the report's overhead is this times the steps."""


def _cwd_of(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return "/"


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


def machine() -> dict[str, object]:
    uname = os.uname()
    found = {"system": uname.sysname, "release": uname.release, "arch": uname.machine, "cores": allowed()}
    return {**found, "scheduler": job} if (job := scheduler(os.environ)) else found
