"""Which library drives the loop: by the frames of its module and what the object there holds. Nothing of it is run.

The real packages are in tests/integration/test_frameworks.py; here a module of the same name, with a trap in it.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.recorder.written import written
from unstuck.recorder.probes.frameworks.library_loops import LibraryLoops
from unstuck.recorder.records.loops import LibraryLoop

ENGINE = """
class State:
    def __init__(self):
        self.epoch, self.iteration, self.max_epochs = 3, 41, 5
        self.metrics = {"loss": 0.5, 7: "no name"}

class Engine:
    def __init__(self):
        self.state = State()

    def run(self, function):
        return function()

class Trap(Engine):
    @property
    def state(self):
        raise AssertionError("a property was run")

    @state.setter
    def state(self, value):
        pass
"""


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    file = tmp_path / "engine.py"
    file.write_text(ENGINE)
    spec = importlib.util.spec_from_file_location("ignite.engine.engine", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "ignite.engine.engine", module)
    spec.loader.exec_module(module)
    return module


def noted(run: Callable[[Callable[[], object]], object]) -> list[LibraryLoop]:
    probe = LibraryLoops()
    with written() as records:
        run(lambda: probe.before_backward(None, sys._getframe()))
    return [record for record in records if isinstance(record, LibraryLoop)]


def test_the_state_of_the_outermost_engine_is_read(engine: Any) -> None:
    inner, outer = engine.Engine(), engine.Engine()
    inner.state.epoch = 99
    (loop,) = noted(lambda then: outer.run(lambda: inner.run(then)))
    assert (loop.library, loop.epoch, loop.global_step, loop.epochs) == ("ignite", 3, 41, 5)
    assert loop.metrics == ["loss"]


def test_what_would_have_to_be_computed_is_not_known(engine: Any) -> None:
    (loop,) = noted(engine.Trap().run)
    assert (loop.library, loop.epoch, loop.global_step, loop.metrics) == ("ignite", None, None, [])


@pytest.mark.usefixtures("engine")
def test_a_loop_of_one_s_own_is_no_library_s() -> None:
    assert noted(lambda then: then()) == []
