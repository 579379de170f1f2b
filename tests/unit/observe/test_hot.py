"""The hot line out of samples, and processors out of the texts of cgroups."""

from __future__ import annotations

from pathlib import Path

import pytest

from unstuck.model import Frame
from unstuck.observe.cores import quota
from unstuck.observe.hot import hot_line, lock_line
from unstuck.observe.sampling import Sample

FETCH = Frame("/venv/lib/python3.11/site-packages/torch/utils/data/_utils/fetch.py", 54, "fetch")
LIBRARY = Frame("/venv/lib/python3.11/site-packages/PIL/Image.py", 9, "open")
LOCKING = Frame("/usr/lib/python3.11/multiprocessing/synchronize.py", 95, "__enter__")
SOURCE = """\
class D:
    def __getitem__(self, i):
        with self.lock:
            x = decode(i)
        return x + 1
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    (tmp_path / "data.py").write_text(SOURCE)
    return str(tmp_path / "data.py")


def at(script: str, line: int, count: int, *beneath: Frame) -> Sample:
    main = Frame(script, 99, "main", user=True)
    return Sample((*beneath, Frame(script, line, "__getitem__", user=True), FETCH, main), count)


def test_the_innermost_line_of_the_users_below_the_fetcher(script: str) -> None:
    training = Sample((Frame(script, 90, "train", user=True),), 500)
    hot = hot_line([at(script, 4, 30, LIBRARY), at(script, 5, 10), training], "")
    assert hot is not None
    assert (hot.line, hot.function, hot.code, hot.samples) == (4, "D.__getitem__", "x = decode(i)", 40)
    assert hot.share == 0.75


def test_a_batch_made_by_libraries_alone_has_no_line() -> None:
    assert hot_line([Sample((LIBRARY, FETCH), 10)], "") is None
    assert hot_line([], "") is None


def test_only_a_line_that_takes_a_lock_is_the_locks(script: str) -> None:
    lock = lock_line([at(script, 3, 20, LOCKING), at(script, 4, 70)])
    assert lock is not None
    assert (lock.line, lock.takes) == (3, "self.lock")
    assert lock_line([at(script, 4, 70, LIBRARY)]) is None


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu.cfs_quota_us": "400000\n", "cpu.cfs_period_us": "100000\n"}, 4.0),
        ({"cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n"}, None),
        ({}, None),
    ],
)
def test_quota_of_a_cgroup(tmp_path: Path, files: dict[str, str], cores: float | None) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert quota(str(tmp_path)) == cores
