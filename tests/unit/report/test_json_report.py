"""The JSON report is a contract: these keys, these meanings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unstuck.errors import UsageError
from unstuck.model import Case, Exit, Finding, Fix, Flight, Pace, Where
from unstuck.report.json_report import read_back, report
from unstuck.report.report_file import check_report_path, write_report
from unstuck.rules.diagnose import Diagnosis

FINDING = Finding(
    rule="file-lock-held",
    family="hang",
    severity="error",
    confidence=0.97,
    title="A worker waits for a lock",
    evidence=("one", "two"),
    where=Where("/home/me/project/train.py", 41, "Shard.__getitem__", 77, 1, 0, 4711, 12),
    fix=Fix("release it", "- a\n+ b"),
    seen_by="kernel",
    consequences=("starved-for-data: no batch",),
    also=(Where("x.py", 1),),
)
CASE = Case(
    command=("python", "train.py"),
    cwd="/home/me/project",
    seconds=31.2,
    outcome="stopped",
    root=7,
    exits=(Exit(9, code=1), Exit(7, signal=15)),
    overhead=0.312,
    flights=(
        Flight(8, role="worker", step=999, paces={"sample": Pace(total=9.0)}),
        Flight(
            7,
            role="main",
            step=120,
            epoch=4,
            paces={"data": Pace(total=3.0), "backward": Pace(total=1.0), "sample": Pace(total=9.0)},
            probes_off=(("optimizer", "no hook"),),
        ),
    ),
    probes_off=(("py-spy", "not allowed"),),
    machine={"cores": 2},
)


def test_the_whole_report() -> None:
    assert report(CASE, Diagnosis((FINDING,), probes_off=(("rule x", "KeyError"),))) | {"tool": None} == {
        "schema": 1,
        "tool": None,
        "run": {
            "command": ["python", "train.py"],
            "outcome": "stopped",
            "exit_code": None,
            "signal": 15,
            "steps": 120,
            "epochs": 4,
            "seconds": 31.2,
            "overhead": {"seconds": 0.312, "share": 0.01},
        },
        "findings": [
            {
                "rule": "file-lock-held",
                "family": "hang",
                "severity": "error",
                "confidence": 0.97,
                "title": "A worker waits for a lock",
                "evidence": ["one", "two"],
                "where": {
                    "file": "train.py",
                    "line": 41,
                    "function": "Shard.__getitem__",
                    "pid": 77,
                    "worker": 1,
                    "rank": 0,
                    "sample": 4711,
                    "step": 12,
                },
                "fix": {"text": "release it", "diff": "- a\n+ b"},
                "seen_by": "kernel",
                "consequences": ["starved-for-data: no batch"],
                "verified": None,
                "withdrawn": False,
            }
        ],
        "healed": [],
        "probes_off": [
            {"probe": "py-spy", "why": "not allowed"},
            {"probe": "optimizer", "why": "no hook"},
            {"probe": "rule x", "why": "KeyError"},
        ],
        "phases": {"data": {"seconds": 3.0, "share": 0.75}, "backward": {"seconds": 1.0, "share": 0.25}},
        "series": {
            "loss": [],
            "rate": [],
            "gradient_norm": [],
            "steps": [],
            "waits": [],
            "memory": [],
            "layers": [],
            "workers": [],
        },
        "machine": {"cores": 2},
    }


def test_an_empty_case_has_all_keys_too() -> None:
    empty = report(Case(), Diagnosis())
    assert set(empty) == set(report(CASE, Diagnosis()))
    assert empty["run"]["steps"] == 0
    assert empty["run"]["overhead"]["share"] == 0.0


def test_steps_come_from_the_rank_furthest_on() -> None:
    case = Case(flights=(Flight(1, role="rank", rank=0, step=5), Flight(2, role="rank", rank=1, step=6)))
    assert report(case, Diagnosis())["run"]["steps"] == 6


def test_files_outside_the_working_directory_stay_absolute() -> None:
    outside = Finding("r", "hang", "error", 1.0, "t", (), Where("/home/me/project2/a.py"), Fix("f"), "flight")
    assert report(CASE, Diagnosis((outside,)))["findings"][0]["where"]["file"] == "/home/me/project2/a.py"


def test_a_report_read_back_and_written_again_is_the_same() -> None:
    first = report(CASE, Diagnosis((FINDING,)))
    assert report(*read_back(json.loads(json.dumps(first)), "report.json")) == first


def test_what_is_no_report_is_said() -> None:
    with pytest.raises(UsageError, match=r"x\.json is not a report"):
        read_back({"findings": [], "run": {}}, "x.json")


def test_the_file_is_written_by_extension(tmp_path: Path) -> None:
    write_report(tmp_path / "out.JSON", CASE, Diagnosis((FINDING,)))
    assert json.loads((tmp_path / "out.JSON").read_text()) == report(CASE, Diagnosis((FINDING,)))


@pytest.mark.parametrize("name", ["out.xyz", "out"])
def test_unknown_extensions_are_refused_with_those_that_exist(tmp_path: Path, name: str) -> None:
    for act in (check_report_path, lambda path: write_report(path, CASE, Diagnosis())):
        with pytest.raises(UsageError) as caught:
            act(tmp_path / name)
        assert ".json" in caught.value.cause
    assert list(tmp_path.iterdir()) == []


def test_a_target_that_can_be_written_is_fine_and_not_touched(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text("old")
    check_report_path(tmp_path / "old.json")
    check_report_path(tmp_path / "new.json")
    assert [p.name for p in tmp_path.iterdir()] == ["old.json"]
    assert (tmp_path / "old.json").read_text() == "old"


def test_a_target_that_cannot_be_written_is_said_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(UsageError) as caught:
        check_report_path(tmp_path / "folder.json")
    assert "folder" in caught.value.cause
    with pytest.raises(UsageError) as caught:
        check_report_path(tmp_path / "missing" / "out.json")
    assert caught.value.next_command.startswith("mkdir -p ")
    with pytest.raises(UsageError) as caught:
        check_report_path("/proc/out.json")
    assert "no file can be created" in caught.value.cause
