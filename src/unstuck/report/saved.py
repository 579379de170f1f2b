"""Saved runs, found again by `report`: a run folder, an id, a case.json, a report.json, or bare flight files."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unstuck import serial
from unstuck.errors import UsageError
from unstuck.model import Case, Exit, Flight, Outcome
from unstuck.recorder.records import Record
from unstuck.recorder.records.deaths import Died
from unstuck.report.store import CASE, FLIGHT, FOLDER, REPORT, RUN
from unstuck.rules.diagnose import Diagnosis


@dataclass(frozen=True)
class Saved:
    """What `report` was pointed at."""

    source: Path
    case: Case
    series: dict[str, Any] | None = None  # where there is no Case but a report: those of the report
    diagnosis: Diagnosis | None = None  # what the run itself reported; None: nothing, or only the Case is there


def find(argument: str | None = None) -> Saved:
    """A run folder, a run id, a case.json, a report.json, a folder of flight files; None: the latest run."""
    if argument is None:
        return _open_folder(_latest(Path(FOLDER)))
    path = Path(argument)
    if not path.exists() and (Path(FOLDER) / argument).is_dir():
        path = Path(FOLDER) / argument
    if path.is_dir():
        return _open_folder(_run_of(path))
    if path.exists():
        return _open_file(path)
    raise UsageError(
        f"no such run: {argument}",
        cause=f"there is no such file or folder, and no run of that id in {FOLDER}/{_known()}",
        next_command="unstuck report",
    )


def case_of_flights(folder: Path) -> Case:
    """A Case from nothing but the files the processes wrote themselves."""
    from unstuck.observer.flights import read_folder
    from unstuck.observer.journals import by_field
    from unstuck.observer.memory_file import read_back

    flights, records = read_folder(folder)
    if not flights:
        raise UsageError(
            f"no run is saved in {folder}",
            cause=f"it has no {CASE}, no {REPORT} and no flight files",
            next_command="unstuck run train.py",
        )
    now = max(last_sign(flight) for flight in flights)
    began = min(flight.began for flight in flights)
    root, curves, groups = read_back(str(folder))
    return Case(
        now=now,
        seconds=max(0.0, now - began),
        outcome=_outcome(flights, records),
        root=root,
        flights=tuple(flights),
        memory=curves,
        groups=groups,
        **by_field(records),
    )


def _case_of_plain_run(folder: Path) -> Case:
    """A run that had nothing to say left its flight files and how it ended."""
    run: Any = serial.load_json(folder / RUN)
    try:
        known: dict[str, Any] = {
            "command": tuple(run["command"]),
            "seconds": run["seconds"],
            "outcome": run["outcome"],
            "root": run["pid"],
            "exits": (Exit(run["pid"], run["exit_code"], run["signal"]),),
            "probes_off": tuple(sorted(run["probes_off"].items())),
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{folder / RUN} was not written by unstuck", cause=f"{type(error).__name__}: {error}"
        ) from error
    try:
        flown = case_of_flights(folder / FLIGHT)
    except UsageError:
        return Case(**known)
    root = known["root"]
    flights = tuple(replace(f, role="main") if f.pid == root and f.role == "unknown" else f for f in flown.flights)
    return replace(flown, flights=flights, **known)


# --- finding -------------------------------------------------------------------------------------------------


def _has_saved(folder: Path) -> bool:
    return any(os.path.exists(folder / name) for name in (CASE, REPORT, RUN))


def _run_of(folder: Path) -> Path:
    """The folder itself if it is a run, else the latest run in it or in its `.unstuck`."""
    if _has_saved(folder):
        return folder
    if (folder / FOLDER).is_dir():
        return _latest(folder / FOLDER)
    return next(iter(_runs_in(folder)), folder)


def _runs_in(base: Path) -> list[Path]:
    """Run folders with something in them, the latest first; ids sort by the time they were made."""
    try:
        return sorted((entry for entry in base.iterdir() if _has_saved(entry)), key=_made, reverse=True)
    except OSError as error:
        raise UsageError(f"cannot look into {base}", cause=error.strerror or str(error)) from error


def _made(folder: Path) -> tuple[str, int]:
    # Runs of the same second have random endings: there the last written is the latest.
    return folder.name.rpartition("-")[0], folder.stat().st_mtime_ns


def _latest(base: Path) -> Path:
    runs = _runs_in(base) if base.is_dir() else []
    if not runs:
        raise UsageError(
            "no run is saved here",
            cause=f"{os.path.abspath(os.curdir)} has no {FOLDER} folder with a run in it",
            next_command="unstuck run train.py",
        )
    return runs[0]


def _known() -> str:
    base = Path(FOLDER)
    names = [run.name for run in _runs_in(base)[:3]] if base.is_dir() else []
    return f" (latest: {', '.join(names)})" if names else ""


def _open_folder(folder: Path) -> Saved:
    for name in (REPORT, CASE):
        if os.path.exists(folder / name):
            return _open_file(folder / name)
    if os.path.exists(folder / RUN):
        return Saved(folder, _case_of_plain_run(folder))
    # Killed before its first report: the flight files may lie in a folder of their own inside.
    for candidate in (*(entry for entry in sorted(folder.iterdir()) if entry.is_dir()), folder):
        try:
            return Saved(candidate, case_of_flights(candidate))
        except UsageError:
            if candidate == folder:
                raise
    raise AssertionError("unreachable: the folder itself is always tried")


def _open_file(path: Path) -> Saved:
    data: Any = serial.load_json(path)
    if not (isinstance(data, dict) and "findings" in data):
        return Saved(path, serial.case_from(data, str(path)))
    from unstuck.report.json_report import read_back

    case, reported = read_back(data, str(path))
    if path.name == REPORT and os.path.exists(path.parent / CASE):
        # A cause may be gone from the Case by the end of the run: what was reported then counts.
        return Saved(path, serial.load_case(path.parent / CASE), diagnosis=reported if reported.findings else None)
    return Saved(path, case, data.get("series"), reported)


def last_sign(flight: Flight) -> float:
    """When it was last known to live: a dead process says nothing about the time it was read at."""
    if flight.alive:
        return flight.read_at
    calls = (call.left or call.entered for call in flight.collectives[-1:])
    return max(flight.began, flight.since, flight.sample_since, *calls, *(step.ended for step in flight.steps[-1:]))


def _outcome(flights: list[Flight], records: list[Record]) -> Outcome:
    training = [flight for flight in flights if flight.role in ("main", "rank")] or flights
    if any(flight.alive for flight in training):
        return "running"
    pids = {flight.pid for flight in training}
    if any(isinstance(record, Died) and record.pid in pids for record in records):
        return "died"
    return "finished" if all(flight.phase == "ended" for flight in training) else "died"
