"""`series` of the JSON report: what was measured is there, extremes stay, size is bounded; reports fit the schema."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from importlib.resources import files

import jsonschema
import pytest
from tests.unit.rules.record_cases import CASES, saved_case

from unstuck.model import Case, Fetch, Flight, MemoryCurve, MemoryPoint, Step, StepTrend
from unstuck.recorder.records.learning import Learning, Loss, Optimizer, Parameter
from unstuck.report.json_report import report
from unstuck.report.series import MAX_POINTS, kept, series
from unstuck.rules.diagnose import Diagnosis, diagnose

NAMES = sorted(path.name.removesuffix(".json.gz") for path in CASES.glob("*.json.gz"))
SCHEMA = json.loads(files("unstuck.report").joinpath("report.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
MAX_BYTES = 200_000  # so that a page with its plots stays far below 400 KB


def test_the_schema_is_one() -> None:
    VALIDATOR.check_schema(SCHEMA)


@pytest.mark.parametrize("name", NAMES[::5])
def test_reports_of_real_runs_fit_the_schema(name: str) -> None:
    case = saved_case(name)
    VALIDATOR.validate(json.loads(json.dumps(report(case, diagnose(case)), allow_nan=False)))


def test_the_schema_refuses_what_is_no_report() -> None:
    broken = report(Case(), Diagnosis())
    broken["series"]["loss"] = [{"step": [1], "value": ["nan"]}]
    assert not VALIDATOR.is_valid(broken)


def test_a_healthy_training_has_its_curves() -> None:
    found = series(saved_case("decay-eats-weights"))
    (loss,) = found["loss"]
    assert len(loss["step"]) == len(loss["value"]) > 100
    assert loss["line"]
    assert found["rate"][0]["optimizer"]
    assert len(found["gradient_norm"][0]["value"]) > 8
    assert found["steps"][0]["seconds"]
    grid = found["layers"][0]
    assert len(grid["update_ratio"]) == len(grid["layer"]) == 3
    assert all(len(row) == len(grid["step"]) for row in (*grid["update_ratio"], *grid["gradient_norm"]))


def test_extremes_stay_when_a_curve_is_thinned() -> None:
    values = [math.sin(n / 500) for n in range(100_000)]
    values[31_007], values[77_777] = 9.0, -9.0
    places = kept(values)
    assert len(places) <= MAX_POINTS
    assert {0, 31_007, 77_777, 99_999} <= set(places)


def test_of_a_large_run_as_much_is_kept_as_of_a_small_one() -> None:
    steps = tuple(Step(float(n), 0.01, number=n) for n in range(100_000))
    points = tuple(MemoryPoint(float(n), n << 20, n) for n in range(10_000))
    learning = Learning(
        pid=1,
        steps=100_000,
        losses=[Loss(points=[(n, 1 / (n + 1)) for n in range(100_000)], count=100_000)],
        optimizers=[Optimizer(kind="SGD", lrs=[(n, 0.1 / (n + 1)) for n in range(20_000)])],
        parameters=[
            Parameter(
                name=f"model.block{n}.weight", grads=[(s, 1.0) for s in range(99)], moves=[(1, 1.0)], weights=[1.0]
            )
            for n in range(2_000)
        ],
    )
    workers = [
        Flight(100 + n, role="worker", worker=n, fetches=tuple(Fetch(float(f), 0.5, f, 8) for f in range(64)))
        for n in range(400)
    ]
    case = Case(
        root=1,
        flights=(Flight(1, role="main", steps=steps), *workers),
        learnings=(learning,) * 50,
        trends=tuple(StepTrend(n, steps) for n in range(50)),
        memory=tuple(MemoryCurve(n, points) for n in range(50)),
    )
    assert len(json.dumps(series(case))) < MAX_BYTES


def test_a_worker_that_is_stuck_shows_since_when() -> None:
    stuck = Flight(
        9,
        role="worker",
        worker=1,
        fetching=True,
        sample=4711,
        sample_since=130.0,
        fetches=(Fetch(125.0, 2.0, 16, 8), Fetch(130.0, 5.0, 24, 8, failed=True)),
    )
    case = Case(now=160.0, seconds=60.0, flights=(stuck, replace(stuck, pid=10, worker=0, fetching=False)))
    idle, busy = series(case)["workers"]
    assert idle["now"] is None
    assert busy["at"] == [23.0, 25.0]
    assert busy["sample"] == [16, 24]
    assert busy["failed"] == [1]
    assert busy["now"] == {"sample": 4711, "at": 30.0, "seconds": 30.0}


def test_nan_is_null() -> None:
    loss = Loss(points=[(0, 1.0), (1, 2.0)], count=2, nonfinite=3, nonfinite_step=2)
    parameter = Parameter(name="w", grads=[(0, 1.0), (1, math.nan)], moves=[(0, math.inf)], weights=[1.0])
    found = series(Case(learnings=(Learning(pid=1, losses=[loss], parameters=[parameter]),)))
    assert found["loss"][0]["nonfinite_step"] == 2
    assert found["gradient_norm"][0]["value"] == [1.0, None]
    assert found["layers"][0]["update_ratio"] == [[None, None]]
    json.dumps(found, allow_nan=False)
