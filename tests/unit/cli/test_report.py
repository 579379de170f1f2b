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


def test_a_page_is_written_by_extension(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "-o", "out.html"]) == 0
    assert "Worker 1 waits" in (tmp_path / "out.html").read_text()
    assert str(tmp_path / "out.html") in capsys.readouterr().err
    assert main(["report", "-o", "out.md"]) == 0
    assert (tmp_path / "out.md").read_text().startswith("## Worker 1 waits")
    assert main(["report", "-o", "out.txt"]) == 2
    assert ".html" in capsys.readouterr().err


def test_open_writes_the_page_into_the_run_folder(
    run: store.RunFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[str] = []

    def show(address: str) -> bool:
        shown.append(address)
        return True

    monkeypatch.setattr("webbrowser.open", show)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("BROWSER", raising=False)
    monkeypatch.delenv("DISPLAY", raising=False)
    assert main(["report", "--open"]) == 0
    assert shown == []  # a text browser would take the terminal
    assert "no browser here" in capsys.readouterr().err
    monkeypatch.setenv("DISPLAY", ":0")
    assert main(["report", "--open"]) == 0
    page = Path(run.path).resolve() / "report.html"
    assert shown == [page.as_uri()]
    assert "Worker 1 waits" in page.read_text()


def test_series_of_a_lone_report_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    plain["series"]["loss"] = [{"pid": 1, "rank": None, "line": "a.py:1", "mean_of": 1, "nonfinite": 0}]
    plain["series"]["loss"][0] |= {"nonfinite_step": None, "step": [1, 2], "value": [3.0, 4.5]}
    (tmp_path / "lone.json").write_text(json.dumps(plain))
    assert main(["report", "lone.json", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["series"] == plain["series"]
    assert main(["report", "lone.json", "-o", "lone.html"]) == 0
    assert "4.5" in (tmp_path / "lone.html").read_text()
