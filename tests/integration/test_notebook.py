"""`unstuck.watch()` in a real Jupyter kernel: findings beneath the cell that runs, places by the number of the cell."""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.skipif(find_spec("ipykernel") is None, reason="ipykernel is not installed"),
    pytest.mark.filterwarnings("ignore"),  # of Jupyter's own
]

SETUP = """
import threading, torch, unstuck
from torch.utils.data import DataLoader, Dataset
heard = []
watcher = unstuck.watch(stall_after=3, on_finding=heard.append)
assert watcher.active, watcher.note
"""
STUCK = """
lock = threading.Lock()
class Rows(Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, index):
        while index == 40:
            pass
        return torch.randn(4)

def train(data):
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x in DataLoader(data, batch_size=8):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
train(Rows())
"""
AGAIN = """
for _ in range(150):
    train(torch.randn(64, 4))
    __import__("time").sleep(0.1)
print("trained")
"""
HEARD = "watcher.stop(); print([(f.rule, f.where.file, f.where.line, f.withdrawn) for f in heard])"


class Notebook:
    """A kernel, and the outputs of each cell as they come."""

    def __init__(self, folder: Path) -> None:
        from jupyter_client.manager import start_new_kernel

        self.manager, self.client = start_new_kernel(kernel_name="python3", cwd=str(folder))

    def start(self, cell: str) -> str:
        return str(self.client.execute(cell, allow_stdin=False))

    def outputs(self, request: str, seconds: float, until: str = "") -> list[dict[str, Any]]:
        """What appears beneath that cell, until it is done or shows that text."""
        found, deadline = [], time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                message = self.client.get_iopub_msg(timeout=1)
            except Exception:
                continue
            if message["parent_header"].get("msg_id") != request:
                continue
            content = message["content"]
            if message["msg_type"] == "status" and content["execution_state"] == "idle":
                break
            found.append(content)
            if until and until in str(content):
                break
        return found

    def run(self, cell: str, seconds: float = 120) -> str:
        return str(self.outputs(self.start(cell), seconds))

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture
def notebook(tmp_path: Path) -> Iterator[Notebook]:
    kernel = Notebook(tmp_path)
    yield kernel
    kernel.close()


def test_a_stuck_cell_is_explained_beneath_it(notebook: Notebook) -> None:
    assert "Error" not in notebook.run(SETUP)
    stuck = notebook.start(STUCK)
    shown = notebook.outputs(stuck, 90, until="text/html")
    assert shown, "nothing appeared"
    page = shown[-1]["data"]["text/html"]
    assert "cell 2, line 6" in page or "cell 2, line 7" in page
    assert "sample 40" in page
    assert "while index == 40:" in page, "the source of the cell"
    assert "ipykernel_" not in page

    notebook.manager.interrupt_kernel()
    rest = str(notebook.outputs(stuck, 60))
    assert "KeyboardInterrupt" in rest
    again = notebook.run(AGAIN)  # longer than it takes to see that it moves
    assert "trained" in again
    assert "text/html" not in again, "what was interrupted did not recover, and a healthy cell has nothing to show"
    heard = notebook.run(HEARD)
    assert "sample-spins" in heard or "main-spins" in heard
    assert "'cell 2'" in heard
    assert "True" not in heard, "nothing was withdrawn"
