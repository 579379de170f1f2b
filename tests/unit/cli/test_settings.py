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
    assert both.number("stall-after", 10.0, 1.0) == 10.0
    assert both.number("stall-after", None, 1.0) == 20.0
    assert settings(tmp_path).number("stall-after", None, 1.0) == 30.0
    assert settings(tmp_path).number("other", None, 1.0) == 1.0


@needs_toml
def test_names_in_the_file_may_have_underscores(tmp_path: Path) -> None:
    assert settings(tmp_path, "stall_after = 30").number("stall-after", None, 1.0) == 30.0


def test_an_empty_variable_is_no_value(tmp_path: Path) -> None:
    assert settings(tmp_path, UNSTUCK_REPORT="").text("report", None, "d") == "d"


def test_each_kind_reads_text(tmp_path: Path) -> None:
    given = settings(tmp_path, UNSTUCK_A="2.5", UNSTUCK_C="off", UNSTUCK_D="stop", UNSTUCK_E="x")
    assert given.number("a", None, 0.0) == 2.5
    assert given.switch("c", None, True) is False
    assert given.choice("d", None, "report", ["report", "stop"]) == "stop"
    assert given.text("e", None, "") == "x"


@needs_toml
@pytest.mark.parametrize(
    ("kind", "bad", "wanted"),
    [
        ("number", '"soon"', "a number"),
        ("number", "-1", "a number"),
        ("number", "nan", "a number"),
        ("number", "true", "a number"),
        ("switch", '"maybe"', "true or false"),
        ("text", "5", "text"),
        ("choice", '"explode"', "report, stop"),
    ],
)
def test_a_bad_value_is_traced_to_its_place(tmp_path: Path, kind: str, bad: str, wanted: str) -> None:
    given = settings(tmp_path, f"on-hang = {bad}")
    more = (["report", "stop"],) if kind == "choice" else ()
    with pytest.raises(UsageError, match=r"on-hang in \[tool.unstuck\] of pyproject.toml is") as caught:
        getattr(given, kind)("on-hang", None, None, *more)
    assert wanted in caught.value.cause


def test_a_bad_variable_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="UNSTUCK_STALL_AFTER in the environment is 'soon'"):
        settings(tmp_path, UNSTUCK_STALL_AFTER="soon").number("stall-after", None, 1.0)


def test_other_peoples_broken_files_are_not_our_business(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[[[")
    assert Settings({}, str(tmp_path)).text("report", None, "d") == "d"


@needs_toml
def test_a_broken_file_of_ours_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read \[tool.unstuck\]"):
        settings(tmp_path, "stall-after = = 3")


def test_without_a_toml_reader_it_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tomllib", None)
    given = settings(tmp_path, "stall-after = 30")
    assert given.number("stall-after", None, 1.0) == 1.0
    assert "3.11" in given.notes[0]
