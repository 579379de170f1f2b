"""Records the saved Cases that the rules are tested on: runs the corpus and keeps each case.json, machine paths removed.

    python -m tests.unit.rules.record_cases [NAME …]
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.conftest import FAULTS

CASES = Path(__file__).parent / "cases"
EXPECTED = json.loads((FAULTS / "expected.json").read_text())


def record(name: str) -> str:
    """Run one faulty script with default times for proofs and short ones for the clock; keep its Case."""
    silent, kept_open = os.pipe()  # a standard input from which nothing comes, and which does not end
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "unstuck", "run", "--on-hang", "stop", "--stall-after", "3", "--grace", "6"]
            + [str(FAULTS / "faulty" / f"{name}.py")],
            cwd=folder,
            stdin=silent,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=120,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            check=False,
        )
        os.close(silent)
        os.close(kept_open)
        found = list(Path(folder).glob(".unstuck/*/case.json"))
        if not found:
            return "no case"
        CASES.mkdir(exist_ok=True)
        (CASES / f"{name}.json").write_text(scrub(found[0].read_text(), folder))
        return json.loads((found[0].parent / "report.json").read_text())["findings"][0]["rule"]


def scrub(text: str, folder: str) -> str:
    """Take the machine out: folders become /project, /venv, /python and /tmp."""
    for real, name in (
        (str(FAULTS.parent.parent / ".venv"), "/venv"),
        (str(FAULTS.parent.parent), "/project"),
        (sys.prefix, "/venv"),
        (sys.base_prefix, "/python"),
        (folder, "/tmp/run"),
        (tempfile.gettempdir(), "/tmp"),
        (os.path.expanduser("~"), "/home/person"),
    ):
        text = text.replace(real, name)
    return re.sub(r'("release": )"[^"]*"', r'\1"6.1"', text)


if __name__ == "__main__":
    for each in sys.argv[1:] or sorted(EXPECTED):
        print(f"{each:32} {record(each)}", flush=True)
