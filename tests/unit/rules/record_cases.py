"""Records the Cases that the rules are tested on: runs the corpus, keeps each case.json, takes the machine out.

python -m tests.unit.rules.record_cases [NAME …]
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from tests import memory_group
from tests.conftest import FAULTS
from tests.corpus import FAULTY
from unstuck.model import Case
from unstuck.serial import case_from

CASES = Path(__file__).parent / "cases"
FLAGS = ("--stop-on", "error", "--stall-after", "3", "--grace", "6")


def case_file(name: str) -> Path:
    return CASES / f"{name}.json.gz"


@cache
def saved_case(name: str, folder: Path = CASES) -> Case:
    return case_from(json.loads(gzip.decompress((folder / f"{name}.json.gz").read_bytes())), name)


def record(name: str) -> str:
    """Run one faulty script with default times for proofs and short ones for the clock; keep its Case."""
    script = FAULTY[name]
    group = memory_group.make(script.memory) if script.memory is not None else None
    silent, kept_open = os.pipe()  # a standard input from which nothing comes, and which does not end
    with tempfile.TemporaryDirectory() as folder:
        flags = FLAGS if script.family not in ("death", "pace", "ranks") else ("--on-hang", "stop")
        command = [sys.executable, "-m", "unstuck", "run", *flags, str(script.path)]
        line = script.launch.replace("PY SCRIPT", shlex.join(command))
        process = subprocess.Popen(
            ["sh", "-c", line if ";" in line or line.startswith("unshare") else f"exec {line}"],
            cwd=folder,
            stdin=silent,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=group.enter if group is not None else None,
            env={**os.environ, "OMP_NUM_THREADS": "1", **(script.env or {})},
        )
        try:
            process.wait(script.limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGINT)
            process.wait(30)
        os.close(silent)
        os.close(kept_open)
        if group is not None:
            group.remove()
        found = list(Path(folder).glob(".unstuck/*/case.json"))
        if not found:
            return "no case"
        CASES.mkdir(exist_ok=True)
        light = lighten(scrub(found[0].read_text(), folder))
        case_file(name).write_bytes(gzip.compress(light.encode(), mtime=0))  # the same Case gives the same bytes
        return str(json.loads((found[0].parent / "report.json").read_text())["findings"][0]["rule"])


def lighten(text: str) -> str:
    """What no hang rule reads is left out: the ring of steps, threads that run no Python."""
    case = json.loads(text)
    for flight in case["flights"]:
        flight["steps"] = flight["steps"][-2:]
    for look in case["looks"]:
        for process in look["processes"]:
            process["threads"] = [t for n, t in enumerate(process["threads"]) if n == 0 or t["python"]]
    return json.dumps(case, separators=(",", ":")) + "\n"


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
    text = re.sub(r'"/sys/fs/cgroup/[^"]*"', '"/sys/fs/cgroup/memory/run"', text)
    return re.sub(r'("release": )"[^"]*"', r'\1"6.1"', text)


if __name__ == "__main__":
    for each in sys.argv[1:] or [name for name, script in FAULTY.items() if not (script.device or script.blind)]:
        print(f"{each:32} {record(each)}", flush=True)
