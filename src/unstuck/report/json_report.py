"""The JSON report: stable keys for other programs, written whole, and read back for `report`."""

from __future__ import annotations

import os
from typing import Any

from unstuck.errors import UsageError
from unstuck.model import SCHEMA, Case, Exit, Finding, Flight, Pace
from unstuck.recorder.records.loaders import Healed
from unstuck.report.series import series
from unstuck.rules.diagnose import Diagnosis
from unstuck.serial import MisfitError, from_plain, to_plain
from unstuck.version import __version__

PHASES = ("data", "between", "backward", "optimizer")


def report(case: Case, diagnosis: Diagnosis, measured: dict[str, Any] | None = None) -> dict[str, Any]:
    """`measured`: the series of a report that was read back; what is not there is made from the Case."""
    exit_ = _exit_of_root(case)
    training = training_flights(case)
    off = [*case.probes_off, *(pair for flight in case.flights for pair in flight.probes_off), *diagnosis.probes_off]
    return {
        "schema": SCHEMA,
        "tool": {"name": "unstuck", "version": __version__},
        "run": {
            "command": list(case.command),
            "outcome": case.outcome,
            "exit_code": exit_.code if exit_ else None,
            "signal": exit_.signal if exit_ else None,
            "steps": max((flight.step for flight in training), default=0),
            "epochs": max((flight.epoch for flight in training), default=0),
            "seconds": round(case.seconds, 3),
            "overhead": {"seconds": round(case.overhead, 6), "share": _share(case.overhead, case.seconds)},
        },
        "findings": [_finding(finding, case.cwd) for finding in diagnosis.findings],
        "healed": [_healed(act) for act in case.healed],
        "probes_off": [{"probe": probe, "why": why} for probe, why in dict.fromkeys(off)],
        "phases": _phases(training),
        "series": {**series(case), **(measured or {})},
        "machine": to_plain(case.machine),
    }


def training_flights(case: Case) -> list[Flight]:
    """The processes that train, the one furthest on first."""
    flights = [flight for flight in case.flights if flight.role in ("main", "rank")]
    return sorted(flights, key=lambda flight: (-flight.step, -flight.progress, flight.rank or 0, flight.pid))


def read_back(data: dict[str, Any], source: str) -> tuple[Case, Diagnosis]:
    """As much of the Case as a report holds, and its findings."""
    try:
        run = data["run"]
        findings = tuple(from_plain(Finding, item) for item in data["findings"])
        exits = (Exit(0, run["exit_code"], run["signal"]),)
        paces = {name: Pace(total=spent["seconds"]) for name, spent in data["phases"].items()}
        case = Case(
            schema=data["schema"],
            command=tuple(run["command"]),
            seconds=run["seconds"],
            outcome=run["outcome"],
            root=0,
            exits=exits if exits[0] != Exit(0) else (),
            overhead=run["overhead"]["seconds"],
            flights=(Flight(0, role="main", step=run["steps"], epoch=run["epochs"], paces=paces),),
            healed=tuple(Healed(**item) for item in data.get("healed", ())),
            probes_off=tuple((item["probe"], item["why"]) for item in data["probes_off"]),
            machine=data["machine"],
        )
    except (KeyError, TypeError, AttributeError, MisfitError) as error:
        raise UsageError(
            f"{source} is not a report written by unstuck", cause=f"{type(error).__name__}: {error}".replace("\n", " ")
        ) from error
    return case, Diagnosis(findings)


# --- parts ---------------------------------------------------------------------------------------------------


def _finding(finding: Finding, cwd: str) -> dict[str, Any]:
    plain: dict[str, Any] = to_plain(finding)
    del plain["also"]  # a matter of presentation; the keys of a finding are a contract
    del plain["fix"]["setting"], plain["fix"]["value"]  # said in the fix already
    plain["where"]["file"] = relative(finding.where.file, cwd)
    return plain


def relative(file: str | None, cwd: str) -> str | None:
    """The path as the person would type it, if it lies in the run's working directory."""
    if file and cwd and os.path.isabs(file) and file.startswith(cwd.rstrip("/") + "/"):
        return os.path.relpath(file, cwd)
    return file


def _healed(act: Healed) -> dict[str, Any]:
    return {"act": act.act, "what": act.what, "sample": act.sample, "worker": act.worker, "reason": act.reason}


def _exit_of_root(case: Case) -> Exit | None:
    return next((exit_ for exit_ in case.exits if exit_.pid == case.root), None)


def _phases(training: list[Flight]) -> dict[str, dict[str, float]]:
    paces = training[0].paces if training else {}
    spent = {name: paces[name].total for name in PHASES if name in paces}
    whole = sum(spent.values())
    return {name: {"seconds": round(s, 6), "share": _share(s, whole)} for name, s in spent.items()}


def _share(part: float, whole: float) -> float:
    return round(part / whole, 6) if whole > 0 else 0.0
