"""`report`: the saved run again, on the terminal, as JSON, into a file."""

from __future__ import annotations

import dataclasses
import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest

from unstuck.cli import main
from unstuck.model import Case, Finding, Fix, Where
from unstuck.report import store
from unstuck.rules import diagnose as diagnosing
from unstuck.rules.diagnose import Diagnosis

FINDING = Finding(
    "file-lock-held", "hang", "error", 0.97, "Worker 1 waits", ("e",), Where(worker=1), Fix("f"), "kernel"
)


@pytest.fixture(autouse=True)
def _stamps_rise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of one second have no order; here each begins a second later."""
    seconds = itertools.count()
    monkeypatch.setattr("time.strftime", lambda _: f"20250101-{next(seconds):06}")


@pytest.fixture(autouse=True)
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> store.RunFolder:
    """A saved run; diagnosing it again finds FINDING."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(diagnosing, "diagnose", lambda _: Diagnosis((FINDING,)))
    folder = store.create()
    folder.save(Case(command=("python", "train.py"), seconds=5.0), Diagnosis())
    return folder


def test_the_latest_run_is_diagnosed_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report"]) == 0
    text = capsys.readouterr().out
    assert "Worker 1 waits" in text
    assert text.endswith("next: unstuck explain file-lock-held\n")
    assert "keeps watching" not in text


def test_what_the_run_said_stands_though_its_traces_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text("import fcntl\nhold()\n")
    said = dataclasses.replace(FINDING, title="As it was said", where=Where(pid=7))
    store.create().save(Case(cwd=str(tmp_path)), Diagnosis((said,)))
    assert main(["report"]) == 0
    text = capsys.readouterr().out
    assert "As it was said" in text
    assert "Worker 1 waits" not in text
    assert "hold()" not in text
    again = dataclasses.replace(said, title="Said anew", also=(Where("train.py", 2),))
    monkeypatch.setattr(diagnosing, "diagnose", lambda _: Diagnosis((again,)))
    assert main(["report"]) == 0
    text = capsys.readouterr().out
    assert "As it was said" in text
    assert "hold()" in text


def test_json_goes_to_standard_output(run: store.RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", run.id, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [finding["rule"] for finding in data["findings"]] == ["file-lock-held"]


def test_a_report_is_written_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--report", "out.json"]) == 0
    assert json.loads((tmp_path / "out.json").read_text())["findings"][0]["rule"] == "file-lock-held"
    assert "Worker 1 waits" in capsys.readouterr().out


def test_a_report_that_cannot_be_written_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--report", "out.xyz"]) == 2
    assert ".json" in capsys.readouterr().err


def test_a_run_that_is_not_there_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "nonsense"]) == 2
    assert "no such run: nonsense" in capsys.readouterr().err


def test_it_needs_no_torch(run: store.RunFolder) -> None:
    code = (
        "import sys; sys.modules['torch'] = None; from unstuck.cli import main;"
        f"sys.exit(main(['report', {run.id!r}, '--json']))"
    )
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=False).returncode == 0
