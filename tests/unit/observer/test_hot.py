"""The hot line out of samples, and processors out of the texts of cgroups."""

from __future__ import annotations

from pathlib import Path

import pytest

from unstuck.model import Frame
from unstuck.observer.stack_samples import Sample, drawing_line, hot_line, lock_line

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


def test_a_sampler_that_the_training_waits_for(script: str) -> None:
    """Beside workers it runs in the training process; without them it is a part of making a batch."""
    folder = "/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py"
    draws, waits = Frame(folder, 740, "_BaseDataLoaderIter._next_index"), Frame(folder, 1200, "_get_data")
    sampler, main = Frame(script, 5, "__iter__", user=True), Frame(script, 99, "main", user=True)
    drawn = Sample((sampler, draws, waits, main), 60)
    line = drawing_line([drawn, Sample((waits, main), 20), Sample((main,), 100)])
    assert line is not None
    assert (line.line, line.share) == (5, 0.75)
    assert drawing_line([drawn, Sample((waits, main), 80)]) is None, "it waits for workers, mostly"
    hot = hot_line([drawn, at(script, 4, 20)], "")
    assert hot is not None
    assert (hot.line, hot.share) == (5, 0.75)


def test_only_a_line_that_takes_a_lock_is_the_locks(script: str) -> None:
    lock = lock_line([at(script, 3, 20, LOCKING), at(script, 4, 70)])
    assert lock is not None
    assert (lock.line, lock.takes) == (3, "self.lock")
    assert lock_line([at(script, 4, 70, LIBRARY)]) is None
