"""The recorder's own test of its seams, as `unstuck env --deep` runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import unstuck

SELFTEST = Path(unstuck.__file__).parent / "recorder" / "selftest.py"


def test_every_seam_fires_on_this_torch() -> None:
    done = subprocess.run([sys.executable, SELFTEST], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{seam}: fires" for seam in ("loader", "samples", "backward", "optimizer")]


@pytest.mark.slow
def test_a_seam_that_is_not_as_expected_is_named() -> None:
    """As on a torch of the future: an attribute we lean on is gone."""
    broken = f"""
import runpy, sys, torch.utils.data._utils.fetch as fetch
del fetch._MapDatasetFetcher.fetch
sys.argv = ["selftest"]
runpy.run_path({str(SELFTEST)!r}, run_name="__main__")
"""
    done = subprocess.run([sys.executable, "-c", broken], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "fetch" in done.stdout + done.stderr


def test_little_of_ours_is_loaded_with_torch(tmp_path: Path) -> None:
    script = tmp_path / "imports.py"
    script.write_text("import sys, torch\nprint(sum('unstuck' in name for name in sys.modules))\n")
    run = [sys.executable, "-m", "unstuck", "run", str(script)]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert 0 < int(done.stdout) <= 25
