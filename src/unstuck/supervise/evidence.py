"""Everything known about a run, gathered from looks, flight files and readings, and the Case it makes."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

from unstuck.model import Case, Exit, Flight, Look, Outcome, Pace, PathFact, Stall, Times
from unstuck.observer.flights import read_flight, unseen, with_crash
from unstuck.observer.gauge import one_each
from unstuck.observer.journals import by_field, read_records
from unstuck.observer.look import Observer
from unstuck.observer.proc import link
from unstuck.recorder import layout as at
from unstuck.recorder.cores import allowed
from unstuck.supervise.progress import excuse, still_for
from unstuck.supervise.readings import Readings

LOOKS_KEPT = 8
MIN_STANDING_SECONDS = 1.0  # a run that has stood for less at Ctrl-C was moving
STEP_COST = 48e-6  # seconds of our hooks in one step, as the bench measures it; the report's overhead is made of it
JOBS = {  # scheduler: (its job id, when the job must end, in seconds since 1970)
    "Slurm": ("SLURM_JOB_ID", "SLURM_JOB_END_TIME"),
    "LSF": ("LSB_JOBID", ""),
    "PBS": ("PBS_JOBID", ""),
    "Grid Engine": ("JOB_ID", ""),
    "Kubernetes": ("KUBERNETES_SERVICE_HOST", ""),
}


class Evidence:
    """Loaded at the first standstill, or the first record that may decide a rule."""

    def __init__(self, readings: Readings, command: tuple[str, ...], stall_after: float | None) -> None:
        self.readings, self.command = readings, command
        s = stall_after
        self.times = Times() if s is None else Times(s, proven=s, busy=s, busy_ratio=0.0, silent=s, silent_ratio=0.0)
        folder = readings.flights.folder
        self.observer = Observer(readings.root, flight_dir=Path(folder) if folder else None)
        self.looks: list[Look] = []
        self.flights: dict[int, Flight] = {}
        """Of the living processes, as they were last read."""
        self._stdin = self.observer.stdin()
        self._paths: dict[str, PathFact] = {}
        self._frozen: tuple[Stall, ...] | None = None
        self._gathered = 0
        self._cached: tuple[object, Case] | None = None

    # --- gathering ---------------------------------------------------------------------------------------

    def note_flights(self) -> None:
        """Keep what the processes wrote, as of now: at Ctrl-C it is too late to read it."""
        if self._frozen is not None:
            return
        self.flights = self._living()
        self._gathered += 1

    def _living(self) -> dict[int, Flight]:
        moves = self.readings.last_moves()
        return {
            gauge.pid: replace(self._with_role(read_flight(gauge, alive=True)), moved=moves.get(gauge.pid, 0.0))
            for gauge in self.readings.flights.living
        }

    def _with_role(self, flight: Flight) -> Flight:
        return replace(flight, role="main") if (flight.pid, flight.role) == (self.readings.root, "unknown") else flight

    def look(self, pid: int) -> None:
        """Look at the whole tree from outside, because `pid` stands still."""
        clock, parts = self.readings.clock, self.readings.parts
        self.note_flights()
        try:
            look = self.observer.look(stacks=True, flights=self.flights)
            self._try_paths(look)
        except Exception as error:
            parts.setdefault("observer", f"{type(error).__name__}: {error}")
            clock.looked(pid)
            return
        self.looks = [*self.looks, look][-LOOKS_KEPT:]
        missing = [p.stacks_missing for look in self.looks[-2:] for p in look.processes if p.pid == pid]
        if len(missing) == 2 and all(why.startswith("py-spy: ") for why in missing):  # a single time may be bad luck
            parts.setdefault("py-spy", missing[1].removeprefix("py-spy: "))
        for clocked in self.readings.clocked():  # one look shows the whole tree
            if clocked == pid or clock.due(clocked):
                clock.looked(clocked, excuse(look, clocked))

    def _try_paths(self, look: Look) -> None:
        """Try from outside what the processes keep trying, so that a rule can say what comes back."""
        for flight in self.flights.values():
            target = flight.attempt_target
            if flight.attempts and ("/" in target or "." in target):
                fact = self.observer.path_fact(os.path.join(link(f"/proc/{flight.pid}/cwd") or "/", target))
                self._paths[target] = replace(fact, path=target)
        for fact in self.observer.paths_of(look, "polls"):
            self._paths[fact.expression] = fact

    @property
    def at_prompt(self) -> bool:
        """Somebody has to answer at the terminal: what stands there must stay readable."""
        threads = [t for p in self.looks[-1].processes for t in p.threads] if self.looks else []
        return any(t.wait is not None and t.wait.kind == "terminal-read" for t in threads)

    # --- Ctrl-C ------------------------------------------------------------------------------------------

    def freeze(self) -> None:
        """Keep the standstill as it is now, if there is one; from here on the tree unwinds, which may take long."""
        moves = self.readings.last_moves()
        if not self.flights or any(flight.read_at < moves.get(pid, 0.0) for pid, flight in self.flights.items()):
            self.note_flights()  # there is none, or it is of a time before the standstill
        stalls = self.stalls()
        self._frozen = stalls if any(stall.standing >= MIN_STANDING_SECONDS for stall in stalls) else ()
        self._gathered += 1

    def nothing_stood(self) -> None:
        """It moved when Ctrl-C came: what stands still from then on unwinds."""
        self.note_flights()
        self._frozen = ()

    def thaw(self) -> None:
        """The run goes on after all."""
        self._frozen = None
        self._gathered += 1

    def of_the_interrupt(self) -> bool:
        """Keep only the looks at the standstill that Ctrl-C ended. False if nothing stood still then."""
        if not self._frozen:
            return False
        since, until = min(stall.since for stall in self._frozen), self.readings.interrupted_at or time.monotonic()
        self.looks = [look for look in self.looks if since <= look.at <= until]  # later it unwinds
        if not any(look.stacks for look in self.looks):
            self.looks.append(unseen(self.flights, self.readings.root))
        self._gathered += 1
        return True

    # --- the Case ----------------------------------------------------------------------------------------

    def stalls(self) -> tuple[Stall, ...]:
        """Of every training process that stands still."""
        if self._frozen is not None:
            return self._frozen
        stalls = (self._stall(pid) for pid in self.readings.clocked())
        return tuple(stall for stall in stalls if stall is not None)

    def _stall(self, pid: int) -> Stall | None:
        hand, flight = self.readings.clock.hands.get(pid), self.flights.get(pid)
        if hand is None or hand.standing <= 0:
            return None
        pace = Pace() if flight is None else self._pace(flight)
        interrupted = self.readings.interrupted_at is not None
        return Stall(
            pid=pid,
            phase="start" if flight is None else flight.phase,
            since=hand.moved,
            standing=hand.standing,
            pace=pace,
            seams=flight is not None and flight.phase != "start",
            excuse=hand.excuse,
            still=still_for([look for look in self.looks if look.at >= hand.moved], pid),
            suspect=self.readings.clock.suspects(pid, pace.p99, pace.count, interrupted),
        )

    def _pace(self, flight: Flight) -> Pace:
        pace = flight.paces.get(flight.phase, Pace())
        seen = self.readings.longest.get((flight.pid, at.PHASES.index(flight.phase)), 0.0)
        return replace(pace, longest=max(pace.longest, seen))

    def case(self, outcome: Outcome = "running", exits: tuple[Exit, ...] = ()) -> Case:
        """Made once a tick, and again only where something has changed since."""
        readings = self.readings
        changing = (readings.ticks, self._gathered, len(self.looks), len(readings.senders), readings.interrupted_at)
        key = (changing, outcome, exits, tuple(readings.parts.items()))
        if self._cached is None or self._cached[0] != key:
            self._cached = key, self._make(outcome, exits)
        return self._cached[1]

    def present(self, outcome: Outcome, exits: tuple[Exit, ...]) -> Case:
        """The Case with the flights of this moment, to be shown. Rules get those that belong to the last look."""
        flights = self._all_flights(self._living(), running=outcome == "running")
        return replace(self.case(outcome, exits), flights=flights)

    def _make(self, outcome: Outcome, exits: tuple[Exit, ...]) -> Case:
        readings, now = self.readings, time.monotonic()
        gauges = [*readings.flights.dead, *readings.flights.living]
        records = by_field(record for gauge in gauges for record in read_records(gauge))
        ours = [gauge for gauge in gauges if gauge.pid == readings.root]
        overhead = sum(at.steps_made(gauge.words) * STEP_COST for gauge in ours)
        overhead += sum(learning.cost for learning in records.get("learnings", ()) if learning.pid == readings.root)
        return Case(
            command=self.command,
            cwd=_working_directory(),
            now=now,
            clock_offset=time.time() - now,
            seconds=now - readings.began,
            outcome=outcome,
            interrupted=readings.interrupted_at is not None,
            root=readings.root,
            stdin=self._stdin,
            exits=exits,
            stalls=self.stalls(),
            times=self.times,
            looks=tuple(self.looks),
            flights=self._all_flights(self.flights, running=outcome == "running"),
            paths=tuple(self._paths.values()),
            memory=readings.memory.curves(),
            groups=readings.memory.groups(),
            trends=readings.trend.trends(),
            strains=tuple(readings.makers.strains),
            copies=readings.copies.all(),
            senders=tuple(readings.senders),
            probes_off=(*readings.parts.items(), *readings.flights.probes_off()),
            overhead=overhead,
            machine=machine(),
            **records,
        )

    def _all_flights(self, living: dict[int, Flight], *, running: bool) -> tuple[Flight, ...]:
        """Of the living as last read, of the dead as they left it; one a process."""
        folder = self.readings.flights
        chosen = one_each([*folder.dead, *folder.living])
        dead = [
            with_crash(self._with_role(read_flight(gauge, alive=False)), gauge.sibling(at.SIGNALS))
            for gauge in folder.dead
            if gauge in chosen and not (running and gauge.pid in living)
        ]
        gone = {flight.pid for flight in dead} - {gauge.pid for gauge in folder.living}
        return (*(flight for flight in living.values() if flight.pid not in gone), *dead)


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


def machine() -> dict[str, object]:
    """The machine, and the scheduler's job that the run is part of."""
    uname = os.uname()
    known = {"system": uname.sysname, "release": uname.release, "arch": uname.machine, "cores": allowed()}
    for name, (job, ends) in JOBS.items():
        if job in os.environ and (name != "Grid Engine" or "SGE_ROOT" in os.environ):
            when = os.environ.get(ends, "")
            scheduler = {"name": name, "job": os.environ[job]}
            return {**known, "scheduler": {**scheduler, "ends": int(when)} if when.isdigit() else scheduler}
    return known
