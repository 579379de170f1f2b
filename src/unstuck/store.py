"""The run folder `.unstuck/<id>/`: made so that jobs never share one, and found again by `report`."""

from __future__ import annotations

import os
import secrets
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unstuck import serial
from unstuck.errors import UsageError
from unstuck.model import Case, Flight, Outcome
from unstuck.rules.diagnose import Diagnosis

FOLDER = ".unstuck"
CASE = "case.json"
REPORT = "report.json"


@dataclass(frozen=True)
class RunFolder:
    """One run's own folder."""

    path: Path
    note: str = ""
    """Why it is not in the working directory; empty if it is."""

    @property
    def id(self) -> str:
        return self.path.name

    @property
    def name(self) -> str:
        """What to type after `unstuck report`."""
        return str(self.path) if self.note else self.id

    def save(self, case: Case, diagnosis: Diagnosis) -> None:
        """Write case.json and report.json, each whole or not at all. Raises OSError."""
        from unstuck.render.json_report import write_report

        serial.dump_case(case, self.path / CASE)
        write_report(self.path / REPORT, case, diagnosis)


@dataclass(frozen=True)
class Saved:
    """What `report` was pointed at."""

    source: Path
    case: Case
    diagnosis: Diagnosis | None = None
    """What the run itself said; None: nothing, or it was the bare Case that was asked for."""


def create(cwd: str | os.PathLike[str] | None = None) -> RunFolder:
    """A new run folder, in a temporary place if the working directory will not have one."""
    try:
        base = Path(cwd if cwd is not None else os.getcwd()) / FOLDER
        base.mkdir(mode=0o700, exist_ok=True)
        if not (base / ".gitignore").exists():
            serial.write_whole(base / ".gitignore", "*\n")
        return RunFolder(_make_unique(base))
    except FileNotFoundError:
        why = "the working directory is gone"
    except FileExistsError:
        why = "a file of that name is in the way"
    except OSError as error:
        why = error.strerror or str(error)
    return RunFolder(_make_elsewhere(), f"no {FOLDER} folder here: {why}")


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
        f"there is no run {argument}",
        cause=f"it is neither a file or folder nor an id in {FOLDER}/{_known()}",
        next_command="unstuck report",
    )


def case_of_flights(folder: Path) -> Case:
    """A Case from nothing but the files the processes wrote themselves."""
    from unstuck.record.reader import read_folder

    flights, facts = read_folder(folder)
    if not flights:
        raise UsageError(
            f"there is nothing of a run in {folder}",
            cause=f"it has no {CASE}, no {REPORT} and no flight files",
            next_command="unstuck run your_script.py",
        )
    now = max(_last_sign(flight) for flight in flights)
    began = min(flight.began for flight in flights)
    return Case(
        now=now, seconds=max(0.0, now - began), outcome=_outcome(flights), flights=tuple(flights), facts=tuple(facts)
    )


# --- making --------------------------------------------------------------------------------------------------


def _make_unique(base: Path) -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S")
    while True:
        path = base / f"{stamp}-{secrets.token_hex(2)}"
        try:
            path.mkdir(mode=0o700)
            return path
        except FileExistsError:
            continue


def _make_elsewhere() -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix="unstuck-"))
    except OSError as error:
        raise UsageError(
            "no folder for this run can be made, neither here nor in the temporary folder",
            cause=error.strerror or str(error),
            next_command="TMPDIR=/a/folder/with/room unstuck ...",
        ) from error


# --- finding -------------------------------------------------------------------------------------------------


def _has_saved(folder: Path) -> bool:
    return os.path.exists(folder / CASE) or os.path.exists(folder / REPORT)


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
            "there is no saved run here",
            cause=f"no {FOLDER} folder with a run in it in {os.path.abspath(os.curdir)}",
            next_command="unstuck run your_script.py",
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
    # Killed before its first report: the flight files may lie in a folder of their own inside.
    for place in (*(entry for entry in sorted(folder.iterdir()) if entry.is_dir()), folder):
        try:
            return Saved(place, case_of_flights(place))
        except UsageError:
            if place == folder:
                raise
    raise AssertionError("unreachable: the folder itself is always tried")


def _open_file(path: Path) -> Saved:
    data: Any = serial.load_json(path)
    if not (isinstance(data, dict) and "findings" in data):
        return Saved(path, serial.case_from(data, str(path)))
    from unstuck.render.json_report import read_back

    case, said = read_back(data, str(path))
    if path.name == REPORT and os.path.exists(path.parent / CASE):
        # A cause may be gone from the Case by the end of the run: what was said while it stood there counts.
        return Saved(path, serial.load_case(path.parent / CASE), said if said.findings else None)
    return Saved(path, case, said)


def _last_sign(flight: Flight) -> float:
    """When it was last known to live: a dead process says nothing about the time it was read at."""
    if flight.alive:
        return flight.read_at
    return max(flight.began, flight.since, flight.sample_since, *(step.ended for step in flight.steps[-1:]))


def _outcome(flights: list[Flight]) -> Outcome:
    training = [flight for flight in flights if flight.role in ("main", "rank")] or flights
    if any(flight.alive for flight in training):
        return "running"
    return "finished" if all(flight.phase == "ended" for flight in training) else "died"
