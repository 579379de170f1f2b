"""The examples of the loader's remedies do what they say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_crashing_worker(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / "crashing_worker.py"], cwd=tmp_path, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    sizes = [int(line.split()[-2]) for line in done.stdout.splitlines() if line.startswith("Batch")]
    assert sizes == [10, 9, 9, 10]
    assert "Left out: sample 13, its worker was killed by SIGSEGV" in done.stdout
    assert "Left out: sample 27, it hung for" in done.stdout
    rows = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
    assert {row["sample"]: row["reason"] for row in rows} == {13: "killed its worker", 27: "hung"}
    assert all("crashing_worker.py" in row["traceback"] for row in rows)
