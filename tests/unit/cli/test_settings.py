"""Flag before environment before file, and a bad value is traced to its place."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from unstuck.cli.settings import Settings
from unstuck.errors import UsageError

needs_toml = pytest.mark.skipif(sys.version_info < (3, 11), reason="no TOML reader before 3.11")


def settings(tmp_path: Path, file: str = "", **environ: str) -> Settings:
    if file:
        (tmp_path / "pyproject.toml").write_text(f"[project]\nname = 'x'\n[tool.unstuck]\n{file}\n")
    return Settings(environ, str(tmp_path))


@needs_toml
def test_the_nearest_place_wins(tmp_path: Path) -> None:
    both = settings(tmp_path, "stall-after = 30", UNSTUCK_STALL_AFTER="20")
    assert both.value("stall-after", "seconds", 10.0) == 10.0
    assert both.value("stall-after", "seconds") == 20.0
    assert settings(tmp_path).value("stall-after", "seconds") == 30.0
    assert settings(tmp_path).value("other", "seconds") is None


@needs_toml
def test_names_in_the_file_may_have_underscores(tmp_path: Path) -> None:
    assert settings(tmp_path, "stall_after = 30").value("stall-after", "seconds") == 30.0


def test_an_empty_variable_is_no_value(tmp_path: Path) -> None:
    assert settings(tmp_path, UNSTUCK_REPORT="").value("report", "text") is None


def test_each_kind_reads_text(tmp_path: Path) -> None:
    given = settings(tmp_path, UNSTUCK_A="2.5", UNSTUCK_C="off", UNSTUCK_D="stop", UNSTUCK_E="x")
    assert given.value("a", "seconds") == 2.5
    assert given.value("c", "switch") is False
    assert given.value("d", "choice", choices=["report", "stop"]) == "stop"
    assert given.value("e", "text") == "x"


@needs_toml
@pytest.mark.parametrize(
    ("kind", "bad", "wanted"),
    [
        ("seconds", '"soon"', "a number"),
        ("seconds", "-1", "a number"),
        ("seconds", "nan", "a number"),
        ("seconds", "true", "a number"),
        ("switch", '"maybe"', "true or false"),
        ("text", "5", "text"),
        ("choice", '"explode"', "report, stop"),
    ],
)
def test_a_bad_value_is_traced_to_its_place(tmp_path: Path, kind: str, bad: str, wanted: str) -> None:
    given = settings(tmp_path, f"on-hang = {bad}")
    with pytest.raises(UsageError, match=r"on-hang in \[tool.unstuck\] of pyproject.toml is") as caught:
        given.value("on-hang", kind, choices=["report", "stop"])
    assert wanted in caught.value.cause


def test_a_bad_variable_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="UNSTUCK_STALL_AFTER in the environment is 'soon'"):
        settings(tmp_path, UNSTUCK_STALL_AFTER="soon").value("stall-after", "seconds")


def test_other_peoples_broken_files_are_not_our_business(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[[[")
    assert Settings({}, str(tmp_path)).value("report", "text") is None


@needs_toml
def test_a_broken_file_of_ours_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read \[tool.unstuck\]"):
        settings(tmp_path, "stall-after = = 3")


def test_without_a_toml_reader_it_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tomllib", None)
    given = settings(tmp_path, "stall-after = 30")
    assert given.value("stall-after", "seconds") is None
    assert "3.11" in given.notes[0]


@needs_toml
def test_a_name_that_is_no_setting_is_said(tmp_path: Path) -> None:
    given = settings(tmp_path, 'on-hnag = "stop"\nstall_after = 3', UNSTUCK_STALLAFTER="3", UNSTUCK_FLIGHT_DIR="/x")
    assert given.notes == [
        "UNSTUCK_STALLAFTER in the environment is not a setting of unstuck: did you mean UNSTUCK_STALL_AFTER?",
        "on-hnag in [tool.unstuck] of pyproject.toml is not a setting of unstuck: did you mean on-hang?",
    ]


def test_every_setting_is_known(tmp_path: Path) -> None:
    assert settings(tmp_path, UNSTUCK_TUNE_SECONDS="3", UNSTUCK_ON_HANG="stop", UNSTUCK_VERBOSE="1").notes == []
