"""A Case survives the way to disk and back, also between versions."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import stat
from pathlib import Path

import pytest

from unstuck import serial
from unstuck.errors import UsageError
from unstuck.model import (
    Case,
    Exit,
    FileLock,
    Finding,
    Fix,
    Flight,
    Frame,
    Look,
    Pace,
    PathFact,
    Process,
    Stall,
    Step,
    Thread,
    Wait,
    Where,
)
from unstuck.recorder.records.loaders import LoaderSettings

FRAME = Frame("train.py", 41, "Shard.__getitem__", loop=(40, 44), holds=("self.lock",), arguments=(("i", "4711"),))
FULL = Case(
    command=("python", "train.py"),
    now=12.5,
    outcome="stopped",
    root=7,
    exits=(Exit(7, signal=15),),
    stalls=(Stall(7, "data", 1.0, 11.5, Pace(3, 0.1, 0.2, 0.3, 0.5)),),
    looks=(
        Look(
            12.0,
            (Process(8, 7, worker=1, threads=(Thread(8, wait=Wait("file-lock", others=(7,)), frames=(FRAME,)),)),),
            (FileLock("a.lock", "FLOCK", "WRITE", 7, waiters=(8,)),),
        ),
    ),
    flights=(
        Flight(7, role="main", paces={"data": Pace(2, 1, 2, 2, 3)}, steps=(Step(1.0, 0.1),), probes_off=(("a", "b"),)),
    ),
    loaders=(LoaderSettings(pid=7, at=1.0, number=2, site=("train.py", 3, "main")),),
    paths=(PathFact("a.lock", True, users=(7, 8)),),
    machine={"cores": 2},
)


def test_a_full_case_comes_back_equal(tmp_path: Path) -> None:
    serial.dump_case(FULL, tmp_path / "case.json")
    assert serial.to_plain(serial.load_case(tmp_path / "case.json")) == serial.to_plain(FULL)


def test_plain_is_what_json_writes_and_reads() -> None:
    plain = serial.to_plain(FULL)
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


def test_where_keeps_numbers_and_names_of_samples_apart() -> None:
    for sample in (4711, "4711", None):
        finding = Finding("r", "hang", "error", 1.0, "t", (), Where(sample=sample), Fix("f"), "flight")
        assert serial.from_plain(Finding, serial.to_plain(finding)) == finding


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_infinite_times_survive(value: float) -> None:
    assert serial.from_plain(Pace, serial.to_plain(Pace(p99=value))).p99 == value


def test_nan_survives() -> None:
    assert math.isnan(serial.from_plain(Pace, serial.to_plain(Pace(p99=math.nan))).p99)


def test_a_newer_file_loads() -> None:
    plain = serial.to_plain(FULL)
    plain["schema"] = 9
    plain["layers"] = [{"name": "fc"}]
    plain["looks"][0]["processes"][0]["threads"][0]["wait"]["kind"] = "quantum"
    case = serial.case_from(plain, "case.json")
    wait = case.looks[0].processes[0].threads[0].wait
    assert case.schema == 9
    assert wait is not None
    assert str(wait.kind) == "quantum"


def test_an_older_file_loads_with_defaults() -> None:
    case = serial.case_from({"schema": 2, "flights": [{"pid": 3}]}, "case.json")
    assert case == Case(flights=(Flight(3),))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1, 2]", "not a saved case"),
        ('{"schema": 1, "findings": []}', "not a saved case"),
        ("{", "not JSON"),
        ('{"schema": 2, "flights": 5}', "cannot be read as a case"),
        ('{"schema": 1, "flights": []}', "was saved by an earlier version of unstuck"),
    ],
)
def test_what_is_no_case_is_said(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(UsageError, match=said):
        serial.load_case(tmp_path / "x.json")


def test_a_misfit_names_the_place() -> None:
    plain = serial.to_plain(FULL)
    plain["looks"][0]["processes"][0]["pid"] = "eight"
    with pytest.raises(UsageError) as caught:
        serial.case_from(plain, "case.json")
    assert "Case.looks[0].processes[0].pid" in caught.value.cause
    assert "'eight'" in caught.value.cause


def test_a_missing_required_field_is_named() -> None:
    with pytest.raises(serial.MisfitError, match="line"):
        serial.from_plain(Frame, {"file": "a.py", "function": "f"})


def test_an_optional_pair_of_the_wrong_length_is_refused() -> None:
    plain = serial.to_plain(FRAME) | {"loop": [1, 2, 3]}
    with pytest.raises(serial.MisfitError, match="a list of 2"):
        serial.from_plain(Frame, plain)


def test_names_that_are_no_utf8_survive(tmp_path: Path) -> None:
    name = os.fsdecode(b"train-\xff.py")
    serial.dump_case(Case(command=("python", name)), tmp_path / "case.json")
    assert serial.load_case(tmp_path / "case.json").command[1] == name


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "case.json"
    target.write_text("old")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="No space"):
        serial.write_whole(target, "new")
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["case.json"]


def test_a_written_file_has_the_modes_of_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        serial.write_whole(tmp_path / "a", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    serial.write_whole(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_every_field_of_the_model_is_read(tmp_path: Path) -> None:
    serial.dump_case(FULL, tmp_path / "case.json")
    written = json.loads((tmp_path / "case.json").read_text())
    assert set(written) == {field.name for field in dataclasses.fields(Case)}
