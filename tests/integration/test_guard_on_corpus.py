"""`unstuck.guard` on every healthy training there is: it never acts. The scripts are as they are; a `sitecustomize`
guards each optimizer that they make."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import HEALTHY, SILENT, Script

SITE = Path(__file__).parent / "scripts" / "guard_everything"
BY_DEFAULT = ("blind-churn-mlp", "learning-lstm-next-value", "learning-grad-scaler-skipped-steps", "adam-rate-of-one")


def trainings() -> list[Any]:
    """Those that make an optimizer of torch, and need nothing but Python."""
    found = []
    for script in (*HEALTHY.values(), *SILENT.values()):
        plain = script.launch == "PY SCRIPT" and not script.device and not script.mounts and script.memory is None
        if plain and "torch.optim." in script.path.read_text():
            marks = [] if script.name in BY_DEFAULT else [pytest.mark.slow]
            found.append(pytest.param(script, id=f"{script.FOLDER}-{script.name}", marks=marks))
    return found


@pytest.mark.parametrize("script", trainings())
def test_it_never_acts_on_a_healthy_training(script: Script, tmp_path: Path) -> None:
    guarded = tmp_path / "guarded.txt"
    source = Path(__file__).parents[2] / "src"
    env = {
        **os.environ,
        **(script.env or {}),
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(SITE), str(source)]),
        "GUARDED": str(guarded),
    }
    done = subprocess.run(
        [sys.executable, str(script.path)],
        cwd=tmp_path,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert "unstuck.guard" not in done.stderr
    assert done.returncode == 0, done.stderr[-2000:]
    assert guarded.read_text()
