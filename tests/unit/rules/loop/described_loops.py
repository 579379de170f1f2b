"""Real loops of real code, run for some steps and described at their seams, as a training describes them."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

from tests.unit.recorder.written import make_step, set_steps, written
from unstuck.model import Case
from unstuck.recorder.probes.loops import undone
from unstuck.recorder.probes.loops.describe import Loops
from unstuck.recorder.records.loops import LoopSnapshot

STEPS = 600
DESCRIBED = (40, 100, 150, 220, 290, 410, 560)


class EnoughError(Exception):
    """The loop has gone on for long enough."""


def described(tmp_path: Path, source: str) -> tuple[Case, int]:
    """Run the script's `train(step_made)` for some steps; what is known then, and how many were made."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(source))
    loops, made = Loops(), 0

    def step_made() -> None:
        nonlocal made
        made = make_step()
        if made in DESCRIBED:
            loops.asked_loops(sys._getframe(1))
        if made >= STEPS:
            raise EnoughError

    module: Any = ModuleType("script_under_test")
    module.__file__ = str(script)
    sys.modules[module.__name__] = module
    exec(compile(script.read_text(), str(script), "exec"), vars(module))
    set_steps(0)
    with patch.object(undone, "user_files", lambda: {str(script)}), written() as snapshots:
        try:
            module.train(step_made)
        except EnoughError:
            pass
        finally:
            set_steps(0)
            del sys.modules[module.__name__]
    return Case(loop_snapshots=tuple(each for each in snapshots if isinstance(each, LoopSnapshot))), made
