"""Real loops of real code, run for some steps and described at their seams, as a training describes them."""

from __future__ import annotations

import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

from tests.unit.recorder.written import make_step, set_steps, written
from unstuck.model import Case
from unstuck.recorder import flight
from unstuck.recorder.probes.loops import expressions, undone
from unstuck.recorder.probes.loops.describe import Loops
from unstuck.recorder.records.loops import LoopSnapshot

STEPS = 600
DESCRIBED = (40, 100, 150, 220, 290, 410, 560)


class EnoughError(Exception):
    """The loop has gone on for long enough."""


def described(tmp_path: Path, source: str) -> tuple[Case, int]:
    """Run the script's `train(step_made)` for some steps; what is known then, and how many were made. A step takes a
    second by the script's `clock()`, and so does a round without one that it tells by `no_step()`."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(source))
    loops, made, idle, times = Loops(), 0, 0, list[float]()

    def step_made() -> None:
        nonlocal made
        made = make_step()
        describe()

    def no_step() -> None:
        nonlocal idle
        idle += 1
        describe()

    def describe() -> None:
        flight.state[flight.BACKWARDS] = made + idle
        if made + idle in DESCRIBED:
            loops.asked_loops(sys._getframe(2))
            times.append(float(made + idle))
        if made + idle >= STEPS:
            raise EnoughError

    module: Any = ModuleType("script_under_test")
    module.__file__ = str(script)
    module.clock, module.no_step = (lambda: float(made + idle)), no_step
    sys.modules[module.__name__] = module
    exec(compile(script.read_text(), str(script), "exec"), vars(module))
    set_steps(0)
    clocks = patch.dict(expressions._CLOCKS, {id(module.clock): module.clock})
    with patch.object(undone, "user_files", lambda: {str(script)}), clocks, written() as snapshots:
        try:
            module.train(step_made)
        except EnoughError:
            pass
        finally:
            set_steps(0)
            flight.state[flight.BACKWARDS] = 0
            del sys.modules[module.__name__]
    told = (each for each in snapshots if isinstance(each, LoopSnapshot))
    return Case(loop_snapshots=tuple(replace(each, at=at) for each, at in zip(told, times, strict=True))), made + idle
