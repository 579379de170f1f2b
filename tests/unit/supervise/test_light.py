"""While a run is healthy the supervisor loads nothing heavy: it shares the machine with the training."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HEAVY = ("unstuck.model", "unstuck.rules", "unstuck.supervise.evidence", "unstuck.report.terminal", "rich")
RUN = f"""
import atexit, sys

def heavy():
    print([name for name in sys.modules if name.startswith({HEAVY!r})])

atexit.register(heavy)
from unstuck.cli import main
sys.exit(main(["run", "train.py"]))
"""


def test_a_healthy_run_loads_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import time\ntime.sleep(1.2)\n")
    run = subprocess.run([sys.executable, "-c", RUN], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (run.returncode, run.stdout, run.stderr) == (0, "[]\n", "")
