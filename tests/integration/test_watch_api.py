"""`unstuck.watch()` inside a script: same recorder, same findings, nothing left behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import fcntl, json, os, sys, tempfile, threading
import torch, unstuck
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __init__(self, path):
        self.path = path
    def __len__(self):
        return 64
    def __getitem__(self, i):
        if i == 40:
            with open(self.path) as f:
                fcntl.flock(f, fcntl.LOCK_SH)
        return torch.randn(4)

def main():
    environment = [os.environ.get(name) for name in ("PYTHONPATH", "UNSTUCK_FLIGHT_DIR")]
    heard = lambda finding: print("heard", finding.rule, finding.withdrawn, flush=True)
    watcher = unstuck.watch(stall_after=2, report=sys.argv[1], on_finding=heard)
    assert watcher.active, watcher.note
    assert unstuck.watch() is watcher
    handle = tempfile.NamedTemporaryFile("w")
    if sys.argv[2] == "stuck":
        fcntl.flock(handle, fcntl.LOCK_EX)
    model = nn.Linear(4, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    threading.Timer(float(sys.argv[3]), lambda: fcntl.flock(handle, fcntl.LOCK_UN)).start()
    for x in DataLoader(Rows(handle.name), batch_size=8, num_workers=2):
        opt.zero_grad()
        model(x).sum().backward()
        opt.step()
    watcher.stop()
    watcher.stop()
    assert [os.environ.get(name) for name in ("PYTHONPATH", "UNSTUCK_FLIGHT_DIR")] == environment
    again = unstuck.watch()
    assert again.active, again.note
    again.stop()
    import torch.utils.data.dataloader as d
    print(d._BaseDataLoaderIter.__next__.__code__.co_filename.endswith("torch/utils/data/dataloader.py"))

if __name__ == "__main__":
    main()
"""


def run(tmp_path: Path, kind: str, release: str) -> tuple[subprocess.CompletedProcess[str], list[dict[str, object]]]:
    script, report = tmp_path / "train.py", tmp_path / "report.json"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, script, report, kind, release], capture_output=True, text=True, timeout=120, cwd=tmp_path
    )
    return done, json.loads(report.read_text())["findings"] if report.exists() else []


def test_a_stuck_worker_is_named_and_withdrawn_when_it_moves(tmp_path: Path) -> None:
    done, findings = run(tmp_path, "stuck", "14")
    assert done.returncode == 0, done.stderr
    assert [f["rule"] for f in findings] == ["file-lock-held"]
    assert findings[0]["withdrawn"] is True
    assert "file-lock-held" in done.stderr
    assert "heard file-lock-held False\nheard file-lock-held True\n" in done.stdout
    assert done.stdout.split()[-1] == "True", "the hook is still in place"


def test_a_healthy_script_hears_nothing(tmp_path: Path) -> None:
    done, findings = run(tmp_path, "healthy", "0")
    assert done.returncode == 0, done.stderr
    assert findings == []
    assert done.stderr == ""


def test_what_a_watched_script_dies_of_is_told(tmp_path: Path) -> None:
    script, report = tmp_path / "train.py", tmp_path / "report.json"
    script.write_text(
        "import sys, torch, unstuck\nfrom torch.utils.data import DataLoader\n"
        "unstuck.watch(report=sys.argv[1])\n"
        "for x in DataLoader(torch.arange(5)):\n    assert x[0] < 3, 'too large'\n"
    )
    done = subprocess.run([sys.executable, script, report], capture_output=True, text=True, timeout=120, cwd=tmp_path)
    told = json.loads(report.read_text())
    assert done.returncode == 1
    assert told["run"]["outcome"] == "died"
    assert [f["rule"] for f in told["findings"]] == ["uncaught-exception"]
    assert told["findings"][0]["where"]["line"] == 5
    assert "AssertionError" in done.stderr
