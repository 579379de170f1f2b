"""Iterators that can be gone through once, held by a loop over epochs: used up, and used as they may be."""

from __future__ import annotations

import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.unit.recorder.written import make_step, set_steps, written
from unstuck.model import Case, Finding
from unstuck.model.case import Outcome
from unstuck.recorder.probes.loops.describe import Loops
from unstuck.rules.loop import loader_exhausted

HEAD = """
import csv
import io
import itertools

ROWS = list(range(8))

def batches(rows):
    for row in rows:
        yield row

def batched(rows, size):
    batch = []
    for row in rows:
        batch.append(row)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch

def first_of(rows, most):
    for number, row in enumerate(rows):
        if number == most:
            return
        yield row

class Reader:
    def __init__(self, rows): self.rows, self.at = rows, 0
    def __iter__(self): return self
    def __next__(self):
        if self.at >= len(self.rows):
            raise StopIteration
        self.at += 1
        return self.rows[self.at - 1]

class Rewinding(Reader):
    def __next__(self):
        if self.at >= len(self.rows):
            self.at = 0
            raise StopIteration
        self.at += 1
        return self.rows[self.at - 1]

class Fresh(Reader):
    def __iter__(self):
        self.at = 0
        return self

class Trainer:
    def __init__(self, stream, step): self.stream, self.step = stream, step
    def epoch(self):
        for row in self.stream:
            self.step()
    def fit(self):
        for epoch in range(4):
            self.epoch()

def go(stream, step):
    for row in stream:
        step()

def epochs(stream, step):
    for epoch in range(3):
        for row in stream:
            step()
"""

USED_UP = {
    "a generator": "epochs(batches(ROWS), step)",
    "zip": "epochs(zip(ROWS, ROWS), step)",
    "map": "epochs(map(str, ROWS), step)",
    "iter of a list": "epochs(iter(ROWS), step)",
    "a file": "epochs(io.TextIOWrapper(io.BytesIO(b'1\\n2\\n3\\n4\\n')), step)",
    "csv": "epochs(csv.reader(['1', '2', '3']), step)",
    "a reader of one's own": "epochs(Reader(ROWS), step)",
    "an attribute": "Trainer(batches(ROWS), step).fit()",
    "handed on": """
        stream = filter(None, ROWS)
        for epoch in range(3):
            go(stream, step)
    """,
    "through a function": """
        stream = map(str, ROWS)
        for epoch in range(3):
            for batch in batched(stream, 2):
                step()
    """,
    "counted": """
        stream = batches(ROWS)
        for epoch in ["a", "b", "c"]:
            for number, row in enumerate(stream):
                step()
    """,
    "while": """
        stream, epoch = batches(ROWS), 0
        while epoch < 3:
            for row in stream:
                step()
            epoch += 1
    """,
}
AS_IT_MAY_BE = {
    "one epoch": """
        stream = batches(ROWS)
        for epoch in range(1):
            for row in stream:
                step()
    """,
    "resumed": """
        stream = batches(ROWS)
        for epoch in range(3):
            for number, row in enumerate(stream):
                step()
                if number == 1:
                    break
    """,
    "islice": """
        stream = batches(ROWS)
        for epoch in range(3):
            for row in itertools.islice(stream, 2):
                step()
    """,
    "some of it, by a function": """
        stream = batches(ROWS)
        for epoch in range(3):
            for row in first_of(stream, 2):
                step()
    """,
    "tee": """
        stream = batches(ROWS)
        for epoch in range(3):
            now, stream = itertools.tee(stream)
            for row in now:
                step()
    """,
    "made anew": """
        for epoch in range(3):
            stream = batches(ROWS)
            for row in stream:
                step()
    """,
    "made anew after each": """
        stream = batches(ROWS)
        for epoch in range(3):
            for row in stream:
                step()
            stream = batches(ROWS)
    """,
    "another each time": """
        for stream in (batches(ROWS), batches(ROWS)):
            go(stream, step)
    """,
    "rewound": """
        stream = io.TextIOWrapper(io.BytesIO(b'1\\n2\\n3\\n'))
        for epoch in range(3):
            for row in stream:
                step()
            stream.seek(0)
    """,
    "a list": "epochs(ROWS, step)",
    "a reader that rewinds": "epochs(Rewinding(ROWS), step)",
    "a reader that starts over": "epochs(Fresh(ROWS), step)",
    "an attribute that is renewed": """
        class Renewing(Trainer):
            def epoch(self):
                super().epoch()
                self.again()
            def again(self):
                self.stream = iter(ROWS)

        Renewing(batches(ROWS), step).fit()
    """,
    "only in one round": """
        stream = batches(ROWS)
        for epoch in range(3):
            if epoch == 2:
                for row in stream:
                    step()
    """,
    "left after the first": """
        stream = batches(ROWS)
        for epoch in range(3):
            for row in stream:
                step()
            if epoch == 0:
                break
    """,
    "steps, of which one pass has enough": """
        stream, made = batches(ROWS), 0
        while made < 8:
            for row in stream:
                step()
                made += 1
    """,
    "left by an error": """
        stream = zip(ROWS, ROWS)
        for epoch in range(3):
            try:
                for row in stream:
                    step()
            except ValueError:
                pass
    """,
}


def described(tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch) -> Case:
    """Run a script that calls `step()`; it describes its loops in the second step, and where it dies."""
    script = tmp_path / "script.py"
    script.write_text(f"{HEAD}\ndef train(step):\n{textwrap.indent(textwrap.dedent(source), '    ')}\n")
    module: Any = ModuleType("script_under_test")
    module.__file__ = str(script)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(script.read_text(), str(script), "exec"), vars(module))
    loops = Loops()
    outcome: Outcome = "finished"

    def step() -> None:
        if make_step() == 2:
            loops.stepped_without_loader(sys._getframe(1), 2)

    set_steps(0)
    with written() as snapshots:
        try:
            module.train(step)
        except ZeroDivisionError as error:
            loops.process_failed(error)
            outcome = "died"
        finally:
            set_steps(0)
    return Case(loop_snapshots=tuple(snapshots), outcome=outcome)


def findings(case: Case) -> list[Finding]:
    return list(loader_exhausted.decide(case))


@pytest.mark.parametrize("name", USED_UP)
def test_it_is_used_up_in_the_first_round(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = described(tmp_path, USED_UP[name], monkeypatch)
    (finding,) = findings(case)
    assert "is used up after the first of" in finding.title
    assert findings(replace(case, outcome="running")) == []
    assert findings(replace(case, interrupted=True)) == []


@pytest.mark.parametrize("name", AS_IT_MAY_BE)
def test_it_is_used_as_it_may_be(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = described(tmp_path, AS_IT_MAY_BE[name], monkeypatch)
    assert case.loop_snapshots
    assert findings(case) == []


EMPTY_ROUND = """
    stream = batches(ROWS)
    for epoch in range(3):
        count = 0
        for row in stream:
            step()
            count += 1
        {dies}
        if epoch == 2 and count > 5:
            break
"""


def test_a_round_that_dies_of_it_shows_which_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (finding,) = findings(described(tmp_path, EMPTY_ROUND.format(dies="print(1 / count)"), monkeypatch))
    assert any("epoch = 1" in line for line in finding.evidence)


def test_a_death_in_the_first_round_is_another_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert findings(described(tmp_path, EMPTY_ROUND.format(dies="print(1 / 0)"), monkeypatch)) == []
