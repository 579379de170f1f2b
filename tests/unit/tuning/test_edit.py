"""The diff for a call of DataLoader: right, or none at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from unstuck.tuning.edit import diff, edited

MORE = {"num_workers": 4, "persistent_workers": True}


@pytest.mark.parametrize(
    ("source", "changes", "wanted"),
    [
        ("loader = DataLoader(rows)", MORE, "loader = DataLoader(rows, num_workers=4, persistent_workers=True)"),
        ("loader = DataLoader(rows, num_workers=0)", {"num_workers": 4}, "loader = DataLoader(rows, num_workers=4)"),
        ("x = data.DataLoader(rows, 8, True, None, None, 2)", {"num_workers": 0},
         "x = data.DataLoader(rows, 8, True, None, None, 0)"),
        ("x = DataLoader(rows, 8, num_workers=2, timeout=60, multiprocessing_context='fork')",
         {"num_workers": 0, "prefetch_factor": None, "multiprocessing_context": None, "timeout": 0},
         "x = DataLoader(rows, 8, num_workers=0, timeout=0, multiprocessing_context=None)"),
        ("x = DataLoader(rows, 8, True, None, None, 2, None, False, False, 60)", {"num_workers": 0, "timeout": 0},
         "x = DataLoader(rows, 8, True, None, None, 0, None, False, False, 0)"),
        ("x = DataLoader(dataset=Rows('ä'), batch_size=2)", {"num_workers": 1},
         "x = DataLoader(dataset=Rows('ä'), batch_size=2, num_workers=1)"),
        ("a = DataLoader(\n    rows,\n    batch_size=2,  # two\n)", MORE,
         "a = DataLoader(\n    rows,\n    batch_size=2,\n    num_workers=4,\n    persistent_workers=True,  # two\n)"),
        ("a = DataLoader(rows,\n               batch_size=2)", {"num_workers": 1},
         "a = DataLoader(rows,\n               batch_size=2,\n               num_workers=1)"),
        ("a = DataLoader(rows, num_workers=4, prefetch_factor=2)", {"num_workers": 0, "prefetch_factor": None},
         "a = DataLoader(rows, num_workers=0, prefetch_factor=None)"),
        ("a = DataLoader(rows, num_workers=4)", {"num_workers": 0, "prefetch_factor": None},
         "a = DataLoader(rows, num_workers=0)"),
        ("a = MyLoader(rows)", {"num_workers": 4}, "a = MyLoader(rows, num_workers=4)"),
    ],
)  # fmt: skip
def test_the_call_after(source: str, changes: dict[str, Any], wanted: str) -> None:
    for end in ("", "\n", "\nprint(1)\n"):
        made = edited((source + end).encode(), 1, "MyLoader", changes)
        assert made is not None
        assert made.decode() == wanted + end


@pytest.mark.parametrize(
    "source",
    [
        "loader = DataLoader(rows, **options)",
        "loader = DataLoader(*parts)",
        "one, two = DataLoader(a), DataLoader(b)",
        "loader = make(rows)",
        "loader = DataLoader()",
        "loader = DataLoader(rows, num_workers=args.workers)",
        "loader = DataLoader(rows, 8, True, None, None, 2 * WORKERS)",
    ],
)
def test_what_cannot_be_placed_is_left(source: str) -> None:
    assert edited(source.encode(), 1, "DataLoader", MORE) is None


def test_the_file_is_only_read(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    text = "import x\n\n\nloader = DataLoader(\r\n    rows)\nend()"
    script.write_bytes(text.encode())
    found = diff(str(script), 4, "DataLoader", {"num_workers": 2})
    assert found is not None
    assert "+    rows,\n" in found
    assert "+    num_workers=2)\n" in found
    assert script.read_bytes() == text.encode()


def test_a_file_that_is_gone_or_is_no_python(tmp_path: Path) -> None:
    assert diff(str(tmp_path / "gone.py"), 1, "DataLoader", MORE) is None
    (tmp_path / "broken.py").write_text("DataLoader(")
    assert diff(str(tmp_path / "broken.py"), 1, "DataLoader", MORE) is None
    assert diff("<stdin>", 1, "DataLoader", MORE) is None
