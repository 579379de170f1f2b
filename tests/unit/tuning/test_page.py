"""The result of `tune` as a person reads it: a table that fits, and a change that breaks nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from unstuck.tuning.tune_page import change_of, print_tuned
from unstuck.tuning.tuned import Row, Tuned

NAME = "16 workers, prefetch 8, persistent, pinned, 2 threads each"
ROWS = (
    Row("1 worker", {}, 123_456.0, 100_000.0, 140_000.0, 1.0, 0.02, present=True),
    Row(NAME, {}, 1_234_567.0, 1_100_000.0, 1_300_000.0, 10.0, 21.0, chosen=True),
)
TUNED = Tuned({}, {"num_workers": 16}, 10.0, keep=False, why="", table=ROWS, notes=("This must be known.",))


def test_only_the_settings_wrap_in_a_narrow_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    print_tuned(TUNED)
    out = capsys.readouterr().out
    for word in ("1,234,567", "1,100,000 – 1,300,000", "10.00×", "chosen", "1st batch", "samples/s", "2 threads"):
        assert word in out or word.replace("×", "x").replace("–", "-") in out
    assert "…" not in out
    assert max(map(len, out.partition("Choice")[0].splitlines())) <= 80
    assert "This must be known." in out


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("DataLoader(rows)", "+x = DataLoader(rows, num_workers=16)"),
        ("DataLoader(rows, num_workers=args.workers)", "There num_workers is args.workers: let that be 16."),
        ("DataLoader(rows, **options)", "num_workers=16"),
    ],
)
def test_the_change(call: str, said: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(f"x = {call}\n")
    found: dict[str, Any] = {"built_at": [str(script), 1], "built_by": "DataLoader", "built": 1}
    assert said in change_of(TUNED, found)
    assert "builds" not in change_of(TUNED, found)
    assert "That line builds 2 loaders" in change_of(TUNED, {**found, "built": 2})
    assert change_of(replace(TUNED, keep=True), found) == ""
