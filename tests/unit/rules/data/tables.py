"""Tables, and what a reading of them records, for the rules on data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import torch

from unstuck.model import Case, Finding
from unstuck.recorder.probes.data import statistics_report
from unstuck.recorder.probes.data.statistics import Gathered
from unstuck.recorder.records.data import DataSeen, GivenLayer, LabelCounts, LoaderData, Scale, Scanned
from unstuck.rules import data as family
from unstuck.rules.diagnose import diagnose

LOADER = LoaderData(
    loader=0,
    site=("/project/train.py", 9, "main"),
    made=("/project/train.py", 5, ""),
    dataset="TensorDataset",
    sampler="RandomSampler",
)


def record(gathered: Gathered, rows: int = 1000) -> LoaderData:
    return statistics_report.filled(replace(LOADER, samples=rows), gathered, trains=True)


def about(x: torch.Tensor, y: torch.Tensor | None = None, batch: int = 0, **more: Any) -> LoaderData:
    """What a reading of this table tells."""
    gathered = Gathered(whole=True)
    batch = batch or len(x)
    for start in range(0, len(x), batch):
        parts = [x[start : start + batch]] if y is None else [x[start : start + batch], y[start : start + batch]]
        gathered.take(parts, list(range(start, min(len(x), start + batch))))
    return replace(record(gathered, len(x)), **more)


def findings(
    told: LoaderData, kind: Literal["data", "scan"] = "data", given: tuple[GivenLayer, ...] = ()
) -> dict[str, Finding]:
    if kind == "data":
        case = Case(data=(DataSeen(pid=7, at=1.0, loaders=[told], given=list(given)),), outcome="finished")
    else:
        case = Case(scans=(Scanned(pid=7, at=1.0, data=told),), outcome="finished")
    diagnosis = diagnose(case, family.RULES)
    assert diagnosis.probes_off == ()
    return {finding.rule: finding for finding in diagnosis.findings}


def given(kind: str, scale: Scale | None) -> GivenLayer:
    return GivenLayer(layer="net.0", kind=kind, shape=[50, 5], scale=scale)


def normal(rows: int = 1000, columns: int = 5, seed: int = 0) -> torch.Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))


def labels(told: LoaderData) -> LabelCounts:
    assert told.labels is not None
    return told.labels
