"""Run folders: private, never shared, found again by every name a person may type."""

from __future__ import annotations

import dataclasses
import os
import stat
import sys
import threading
import types
from pathlib import Path

import pytest

from unstuck.errors import UsageError
from unstuck.model import Case, Finding, Fix, Flight, Where
from unstuck.recorder.records.loaders import LoaderSettings
from unstuck.report import saved, store
from unstuck.rules.diagnose import Diagnosis

CASE = Case(command=("python", "train.py"), seconds=3.0)
DIAGNOSIS = Diagnosis((Finding("file-lock-held", "hang", "error", 0.9, "t", (), Where(), Fix("f"), "kernel"),))


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def flights_reader(monkeypatch: pytest.MonkeyPatch, flights: dict[str, list[Flight]]) -> None:
    """Stand in for the reader of flight files: which folder (by name) holds which flights."""
    reader = types.ModuleType("unstuck.observer.flights")
    reader.read_folder = lambda path: (flights.get(Path(path).name, []), [LoaderSettings(pid=1)])  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "unstuck.observer.flights", reader)


def test_the_folder_is_private_and_ignored_by_git() -> None:
    run = store.create()
    assert Path(run.path).parent == Path.cwd() / ".unstuck"
    assert stat.S_IMODE(Path(run.path).stat().st_mode) == 0o700
    assert stat.S_IMODE(Path(run.path).parent.stat().st_mode) == 0o700
    assert (Path(run.path).parent / ".gitignore").read_text() == "*\n"
    assert run.note == ""
    assert run.name == run.id


def test_a_hundred_jobs_in_one_second_have_a_hundred_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    # Only 256 endings: the birthday paradox makes collisions certain, mkdir must settle them.
    monkeypatch.setattr("time.strftime", lambda _: "20250101-000000")
    monkeypatch.setattr("secrets.token_hex", lambda n, draw=os.urandom: draw(1 if n == 2 else n).hex())
    runs: list[store.RunFolder] = []
    threads = [threading.Thread(target=lambda: runs.append(store.create())) for _ in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({Path(run.path) for run in runs}) == 100
    assert all(Path(run.path).parent.name == ".unstuck" for run in runs)


def test_a_deleted_working_directory_falls_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    run = store.create()
    try:
        assert "gone" in run.note
        assert Path(run.path).is_dir()
        assert run.name == str(Path(run.path))
        assert stat.S_IMODE(Path(run.path).stat().st_mode) == 0o700
    finally:
        Path(run.path).rmdir()


def test_a_read_only_working_directory_falls_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    make = os.mkdir

    def refuse(path: str, mode: int = 0o777) -> None:
        if path.endswith(".unstuck"):
            raise OSError(30, "Read-only file system")
        make(path, mode)

    monkeypatch.setattr(os, "mkdir", refuse)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run = store.create()
    assert "Read-only file system" in run.note
    assert Path(run.path).parent == tmp_path


def test_a_file_in_the_way_falls_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    Path(".unstuck").write_text("")
    assert "in the way" in store.create().note


def test_without_room_anywhere_the_run_goes_on_and_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nonexistent")
    Path(".unstuck").write_text("")
    run = store.create()
    assert "nothing of this run will be saved" in run.note
    with pytest.raises(OSError, match="nothing of this run will be saved"):
        run.save(CASE, DIAGNOSIS)


@pytest.mark.parametrize("how", ["folder", "id", "case", "report", "base", "project", "nothing"])
def test_every_name_of_a_run_finds_it(how: str) -> None:
    run = store.create()
    run.save(CASE, DIAGNOSIS)
    argument = {
        "folder": str(Path(run.path)),
        "id": run.id,
        "case": str(Path(run.path) / "case.json"),
        "report": str(Path(run.path) / "report.json"),
        "base": ".unstuck",
        "project": ".",
        "nothing": None,
    }[how]
    found = saved.find(argument)
    assert found.case == CASE
    assert found.diagnosis == (None if how == "case" else DIAGNOSIS)


def test_a_run_that_said_nothing_is_diagnosed_again() -> None:
    store.create().save(CASE, Diagnosis())
    assert saved.find().diagnosis is None


def test_the_latest_run_is_the_one_begun_last(monkeypatch: pytest.MonkeyPatch) -> None:
    for stamp in ("20250102-000000", "20250101-000000"):
        monkeypatch.setattr("time.strftime", lambda _, stamp=stamp: stamp)
        store.create().save(Case(command=(stamp,)), Diagnosis())
    assert saved.find().case.command == ("20250102-000000",)


def test_a_run_with_nothing_saved_yet_is_not_the_latest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.strftime", lambda _: "20250101-000000")
    store.create().save(CASE, DIAGNOSIS)
    monkeypatch.setattr("time.strftime", lambda _: "20250102-000000")
    store.create()
    assert saved.find().case == CASE


def test_a_report_alone_still_shows_its_findings() -> None:
    run = store.create()
    run.save(CASE, DIAGNOSIS)
    (Path(run.path) / "case.json").unlink()
    found = saved.find(run.id)
    assert found.diagnosis == DIAGNOSIS
    assert found.case.command == CASE.command


def test_a_folder_of_flight_files_becomes_a_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flights = [Flight(7, began=10.0, read_at=15.0, role="main"), Flight(8, began=11.0, read_at=16.0, role="worker")]
    flights_reader(monkeypatch, {"raw": flights})
    (tmp_path / "raw").mkdir()
    case = saved.find("raw").case
    assert case.flights == tuple(flights)
    assert case.loaders[0].pid == 1
    assert (case.now, case.seconds, case.outcome) == (16.0, 6.0, "running")


def test_the_time_of_the_dead_ends_with_their_last_sign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dead = Flight(7, began=10.0, read_at=9000.0, role="main", phase="data", since=13.0, alive=False)
    later = dataclasses.replace(dead, pid=8, role="worker", sample_since=14.0)
    flights_reader(monkeypatch, {"raw": [dead, later]})
    (tmp_path / "raw").mkdir()
    case = saved.find("raw").case
    assert (case.seconds, case.outcome) == (4.0, "died")


def test_flight_files_inside_an_unfinished_run_folder_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    flights_reader(monkeypatch, {"flights": [Flight(7, role="main", alive=False, phase="data")]})
    run = store.create()
    (Path(run.path) / "flights").mkdir()
    assert saved.find(run.id).case.outcome == "died"


def test_a_folder_without_anything_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flights_reader(monkeypatch, {})
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="no run is saved"):
        saved.find("empty")


def test_no_run_at_all_names_the_next_command() -> None:
    with pytest.raises(UsageError, match="no run is saved") as caught:
        saved.find()
    assert caught.value.next_command.startswith("unstuck run")


def test_an_unknown_id_names_those_that_exist() -> None:
    run = store.create()
    run.save(CASE, DIAGNOSIS)
    with pytest.raises(UsageError, match="no such run: nonsense") as caught:
        saved.find("nonsense")
    assert run.id in caught.value.cause
