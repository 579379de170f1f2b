"""Waits for data made by hand, for the rules on pace."""

from __future__ import annotations

from typing import Any

from unstuck.model import Case, Fetcher, Finding, Flight, HotLine, Pace, Strain
from unstuck.recorder.records import Record
from unstuck.recorder.records.loaders import DataWait, GpuCopies, LoaderSettings, WorkersStarted
from unstuck.rules.diagnose import diagnose

PID = 50
SITE = ("/job/train.py", 30, "main")
HOT = HotLine("/job/data.py", 31, "Pictures.__getitem__", "picture = decode(path)", share=0.8, samples=200)
MB = 10**6


def waits(**more: Any) -> DataWait:
    """What the training told: by default it waits 60 of 100 seconds, 0.6 s for each of 100 batches."""
    known: dict[str, Any] = {
        "number": 0,
        "length": 100,
        "passes": 1,
        "loaders": 1,
        "opening": 0.1,
        "since_first": 101.0,
        "site": SITE,
        "step": 100,
        "drawn": 100,
        "waited": 60.0,
        "seconds": 100.0,
        "longest": 0.6,
        "first_wait": 0.6,
        "trains": True,
    }
    return DataWait(pid=PID, at=100.0, **{**known, **more})


def loader(**more: Any) -> LoaderSettings:
    place = ("/job/data.py", 20, "g")
    known: dict[str, Any] = {"number": 0, "loader": 7, "site": SITE, "dataset": "Pictures", "dataset_site": place}
    return LoaderSettings(pid=PID, at=1.0, **{**known, **more})


def worker(**more: Any) -> Fetcher:
    return Fetcher(**{"pid": 60, "worker": 0, "busy": 1.0, "cpu": 0.95, **more})


def strain(*fetchers: Fetcher, **more: Any) -> Strain:
    known: dict[str, Any] = {"pid": PID, "at": 50.0, "seconds": 2.0, "looks": 50, "cores": 8.0, "cpu": 1.0, "hot": HOT}
    return Strain(**{**known, "fetchers": fetchers or (worker(pid=PID, worker=None),), **more})


FIELDS: dict[type[Record], str] = {
    DataWait: "data_waits", LoaderSettings: "loaders", WorkersStarted: "workers_started", GpuCopies: "gpu_copies",
}  # fmt: skip


def case(told: Record, seen: Strain | None = None, *records: Record, **more: Any) -> Case:
    flights = more.pop("flights", (Flight(PID, role="main", step=100),))
    strains = (seen,) if seen is not None else ()
    written: dict[str, Any] = {}
    for record in (loader(), *records, told):
        written.setdefault(FIELDS[type(record)], []).append(record)
    written = {name: tuple(found) for name, found in written.items()}
    return Case(root=PID, flights=flights, strains=strains, **written, **more)


def only(case: Case) -> Finding:
    (finding,) = diagnose(case).findings
    return finding


def rules(case: Case) -> list[tuple[str, str]]:
    return [(f.rule, f.severity) for f in diagnose(case).findings]


def crowd(count: int = 8, threads: int = 1, **more: Any) -> Strain:
    workers = [worker(pid=60 + n, worker=n, cpu=1.6 / count, delayed=0.7, threads=threads) for n in range(count)]
    return strain(*workers, **{"cores": 2.0, "cpu": 1.95, "delayed": 0.3, **more})


def restarts(**more: Any) -> DataWait:
    started: dict[str, Any] = {
        "workers": 2,
        "passes": 11,
        "starts": 10,
        "starting": 20.0,
        "waited": 1.0,
        "seconds": 50.0,
    }
    return waits(**{**started, **more})


def fetched(seconds: float) -> dict[str, Any]:
    flights = [Flight(60 + n, role="worker", paces={"fetch": Pace(count=10, total=10 * seconds)}) for n in range(2)]
    return {"flights": (Flight(PID, role="main"), *flights)}


STARTED = WorkersStarted(pid=PID, at=1.0, loader=7, number=0, pids=[60, 61])
