"""`unstuck.guard` on every healthy training there is: it acts on none but those named here. The scripts are as they
are; a `sitecustomize` guards each optimizer that they make."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import HEALTHY, SILENT, Script

SITE = Path(__file__).parent / "scripts" / "guard_everything"
SCALED_DOWN = {
    "learning-reinforce-episodes": "a rare episode, a thousand times the usual norm; the first steps had two above it",
    "spin-packed-stream": "the last batch of an epoch, three hundred times the usual norm",
    "mem-running-total": "twelve layers that share their weights: single batches of forty times the usual norm",
}
"""Single gradients far beyond the others, in trainings that do well without the guard."""
BY_DEFAULT = ("blind-churn-mlp", "learning-lstm-next-value", "learning-grad-scaler-skipped-steps", "adam-rate-of-one")


def trainings() -> list[Any]:
    """Those that make an optimizer of torch, and need nothing but Python."""
    found = []
    for script in (*HEALTHY.values(), *SILENT.values()):
        plain = script.launch == "PY SCRIPT" and not script.device and not script.mounts and script.memory is None
        if plain and "torch.optim." in script.path.read_text():
            marks: list[Any] = [] if script.name in BY_DEFAULT else [pytest.mark.slow]
            if script.name in SCALED_DOWN:
                marks.append(pytest.mark.xfail(reason=SCALED_DOWN[script.name], strict=True))
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
