"""One watched tree: reads the clock each tick, looks when it stands still, keeps what was found."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from unstuck.model import Case, Exit, Finding, Flight, Look, Outcome, Pace, PathFact, Stall
from unstuck.supervise.clock import Clock
from unstuck.supervise.hangar import Hangar
from unstuck.supervise.options import Options

LOOKS_KEPT = 8
_LOUDNESS = {"error": 0, "warning": 1, "info": 2}


@dataclass(slots=True)
class Said:
    """A finding, and the standstill it was about: if that one moves again, the finding is withdrawn."""

    finding: Finding
    stalled: int | None
    at: float


@dataclass
class Watch:
    """Everything the supervisor knows of the run, and the Case it makes of it."""

    root: int
    command: tuple[str, ...]
    options: Options
    hangar: Hangar
    began: float = field(default_factory=time.monotonic)
    looks: list[Look] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    probes_off: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False
    ending: bool = False
    """We are ending it: what moves now moves because of us."""
    flights: dict[int, Flight] = field(default_factory=dict)
    stdin: str = ""

    def __post_init__(self) -> None:
        self.clock = Clock(self.options.times)
        self._observer: object | None = None
        self._stalled: int | None = None
        self._paths: dict[str, PathFact] = {}
        self._stalls_at_interrupt: tuple[Stall, ...] | None = None
        self.receipts = 0

    # --- each tick ---------------------------------------------------------------------------------------

    def tick(self, now: float) -> bool:
        """Read the clock; look and think if it is time. True if there is something new to say."""
        self.hangar.scan()
        progress = {file.pid: file.progress for file in self.hangar.open.values()}
        progress.setdefault(self.root, sum(progress.values()))
        self.clock.tick(now, progress, self._stopped(progress))
        if self.interrupted or self.ending:
            return False
        news = self._withdraw_recovered()
        root = self.hangar.file_of(self.root)
        self.receipts = 0 if root is None else root.signalled()
        for pid in self.clocked():
            hand = self.clock.hands.get(pid)
            if hand is not None and hand.standing >= 0.5:
                self.flights = self._read_flights()
            if self.clock.wants_look(pid, self._pace(pid)):
                news |= self.look(pid)
        return news

    def clocked(self) -> list[int]:
        """Processes whose clock counts: those that train; before any does, what we started."""
        training = [f.pid for f in self.hangar.open.values() if f.trains]
        return training or [self.root]

    def _pace(self, pid: int) -> Pace:
        file = self.hangar.file_of(pid)
        return Pace() if file is None else file.pace()

    def _stopped(self, pids: dict[int, int]) -> frozenset[int]:
        """Those whose main thread is stopped by SIGSTOP or Ctrl-Z."""
        stopped = set()
        for pid in pids:
            try:
                stat = Path(f"/proc/{pid}/stat").read_bytes()
            except OSError:
                continue
            if stat.rpartition(b")")[2].split()[0] in (b"T", b"t"):
                stopped.add(pid)
        return frozenset(stopped)

    def _read_flights(self) -> dict[int, Flight]:
        flights = {}
        for pid, flight in self.hangar.flights().items():
            hand = self.clock.hands.get(pid)
            role = "main" if pid == self.root and flight.role == "unknown" else flight.role
            flights[pid] = replace(flight, moved=hand.moved if hand else 0.0, role=role)
        return flights

    # --- looking -----------------------------------------------------------------------------------------

    def look(self, pid: int) -> bool:
        """Look at the tree from outside, then let the rules speak."""
        from unstuck.supervise.excuses import excuse

        self.flights = self._read_flights()
        if self._stalled != pid:
            self.looks.clear()
            self._stalled = pid
        try:
            look = self._observe()
        except Exception as fault:
            self.off("observer", fault)
            self.clock.looked(pid)
            return False
        self.looks = [*self.looks, look][-LOOKS_KEPT:]
        self.clock.looked(pid)
        self.clock.excuse(pid, excuse(look, pid))
        return self.think()

    def _observe(self) -> Look:
        from unstuck.observe.look import Observer

        if not isinstance(self._observer, Observer):
            self._observer = Observer(self.root, flight_dir=self.hangar.folder)
        look = self._observer.look(stacks=True, flights=self.flights)
        for flight in self.flights.values():
            target = flight.attempt_target
            if flight.attempts and ("/" in target or "." in target) and flight.alive:
                fact = self._observer.path_fact(os.path.join(self._cwd(flight.pid), target))
                self._paths[target] = replace(fact, path=target)
        return look

    def _cwd(self, pid: int) -> str:
        try:
            return os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            return "/"

    # --- thinking ----------------------------------------------------------------------------------------

    def think(self) -> bool:
        """Apply the rules to the Case as it stands. True if they found something new."""
        from unstuck.rules.diagnose import diagnose

        diagnosis = diagnose(self.case())
        for probe, why in diagnosis.probes_off:
            self.probes_off.setdefault(probe, why)
        standing = [said.finding for said in self.said if not said.finding.withdrawn]
        known = {(f.rule, f.where.pid) for f in standing}
        new = [f for f in diagnosis.findings if (f.rule, f.where.pid) not in known]
        if any(f.severity == "error" for f in standing):
            new = [f for f in new if f.severity != "error"]  # the cause is named; its echoes are not news
        now = time.monotonic()
        self.said.extend(Said(f, self._stalled if f.family == "hang" else None, now) for f in new)
        return bool(new)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(sorted((said.finding for said in self.said), key=lambda f: _LOUDNESS[f.severity]))

    def _withdraw_recovered(self) -> bool:
        """A stall that moved again is withdrawn, and said so."""
        news = False
        for said in self.said:
            hand = self.clock.hands.get(said.stalled) if said.stalled is not None else None
            if said.finding.withdrawn or hand is None or hand.moved <= said.at:
                continue
            said.finding = replace(said.finding, withdrawn=True, severity="info")
            news = True
        return news

    def interrupt(self) -> None:
        """Ctrl-C or SIGTERM came: keep what is known of this very moment, before the tree unwinds."""
        self.interrupted = True
        if not self.flights:
            self.flights = self._read_flights()
        self._stalls_at_interrupt = self.stalls()

    def explain_interrupt(self) -> bool:
        """After the tree is gone: the stacks it left behind complete the last look, and the rules speak."""
        from unstuck.supervise.last_words import last_look

        if not self._stalls_at_interrupt:
            return False
        try:
            self.looks = last_look(self.looks, self.flights, self.hangar, self.root)
        except Exception as fault:
            self.off("last words", fault)
        return self.think()

    def case(self, outcome: Outcome = "running", exits: tuple[Exit, ...] = ()) -> Case:
        now = time.monotonic()
        return Case(
            command=self.command,
            cwd=_cwd(),
            now=now,
            clock_offset=time.time() - now,
            seconds=now - self.began,
            outcome=outcome,
            interrupted=self.interrupted,
            root=self.root,
            stdin=self.stdin,
            exits=exits,
            stalls=self.stalls(),
            times=self.options.times,
            looks=tuple(self.looks),
            flights=(*self.flights.values(), *self.hangar.dead),
            facts=self.hangar.facts(),
            paths=tuple(self._paths.values()),
            probes_off=tuple(self.probes_off.items()),
            machine=machine(),
        )

    def stalls(self) -> tuple[Stall, ...]:
        from unstuck.supervise.stillness import still_since

        if self._stalls_at_interrupt is not None:
            return self._stalls_at_interrupt
        still = still_since(tuple(self.looks))
        found = (self.clock.stall(self.flights.get(pid), pid, still, self.interrupted) for pid in self.clocked())
        return tuple(stall for stall in found if stall is not None)

    def off(self, probe: str, fault: BaseException) -> None:
        self.probes_off.setdefault(probe, f"{type(fault).__name__}: {fault}")


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


def machine() -> dict[str, object]:
    uname = os.uname()
    cores = len(os.sched_getaffinity(0))
    return {"system": uname.sysname, "release": uname.release, "arch": uname.machine, "cores": cores}
