"""`unstuck run` in a workflow of GitHub's: annotations, the summary, and the Action of this repository."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

SCRIPT = """import torch
net = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(40):
    optimizer.zero_grad()
    torch.log(net(torch.randn(64, 4))).mean().backward()
    optimizer.step()
"""
ROOT = Path(__file__).parents[2]


def workflow(folder: Path, *words: str, **environ: str) -> tuple[subprocess.CompletedProcess[str], str]:
    """A command in the middle of a job, and the summary of its step."""
    (folder / "train.py").write_text(SCRIPT)
    summary = folder / "summary.md"
    summary.touch()
    env = {key: value for key, value in os.environ.items() if not key.startswith(("GITHUB_", "UNSTUCK_"))}
    env |= {"GITHUB_WORKSPACE": str(folder), "GITHUB_STEP_SUMMARY": str(summary), **environ}
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=120)
    return done, summary.read_text()


def test_findings_are_annotations_and_a_summary(tmp_path: Path) -> None:
    run = (sys.executable, "-m", "unstuck", "run", "--fail-on", "error", "train.py")
    done, summary = workflow(tmp_path, *run, GITHUB_ACTIONS="true")
    assert done.returncode == 4, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("::")]
    assert re.match(r"::error file=train\.py,line=\d,title=unstuck%3A [a-z-]+::[A-Z`]", lines[0]), done.stderr
    assert summary.startswith("## ")
    assert "train.py" in summary

    done, summary = workflow(tmp_path, *run, UNSTUCK_FORMAT="terminal", GITHUB_ACTIONS="true")
    assert "\n::" not in done.stderr


def test_the_action_runs_what_it_is_given(tmp_path: Path) -> None:
    """Its own script, as the runner would start it; that it is installed from its folder is not tried here."""
    script = (ROOT / "action.yml").read_text().rpartition("run: |\n")[2]
    words = ("bash", "-c", "".join(line[8:] for line in script.splitlines(keepends=True)))
    path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    given = {"OPTIONS": "--fail-on error", "COMMAND": "train.py 'two words' $(echo one)", "UNSTUCK_FORMAT": "github"}
    done, summary = workflow(tmp_path, *words, PATH=path, UNSTUCK_REPORT="why.json", **given)
    assert done.returncode == 4, done.stderr
    assert "\n::error file=train.py" in done.stderr
    assert summary
    assert '"two words",' in (tmp_path / "why.json").read_text()
