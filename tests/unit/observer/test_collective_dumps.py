"""Dumps of torch's own flight recorder, made by torch itself: read as collectives; what is not plain is refused."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import pytest

from unstuck.observer.collective_dumps import dumped
from unstuck.recorder.records.ranks import WorldJoined

SCRIPT = """
import sys, time, torch, torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace
dist.init_process_group("gloo", init_method="file://" + sys.argv[1] + "/meet", rank=0, world_size=1)
dist.all_reduce(torch.ones(3, 4))
dist.broadcast(torch.ones(2, dtype=torch.int64), src=0)
time.sleep(1)  # a thread of torch's notes their ends, a moment later
open(sys.argv[1] + "/trace_0", "wb").write(_dump_fr_trace())
dist.destroy_process_group()  # without this torch aborts at exit now and then
"""


def joined(folder: Path, at: float = 0.0) -> WorldJoined:
    return WorldJoined(pid=1, rank=0, world=1, dumps=[str(folder / "trace_")], at=at)


def test_what_torch_dumps_is_read(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    env = {**os.environ, "TORCH_FR_BUFFER_SIZE": "100"}
    subprocess.run([sys.executable, script, tmp_path], check=True, env=env, capture_output=True)
    calls = dumped(joined(tmp_path))
    assert [(c.kind, c.number, c.dtype, c.shape) for c in calls] == [
        ("all_reduce", 1, "float32", (3, 4)),
        ("broadcast", 2, "int64", (2,)),
    ]
    assert [(c.file, c.line) for c in calls] == [(str(script), 5), (str(script), 6)]
    assert all(c.left is not None for c in calls)
    assert dumped(joined(tmp_path, at=time.monotonic() + 60)) == (), "a dump of an earlier run"


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("evil",)


@pytest.mark.parametrize("content", [b"", b"\x80\x04cut", pickle.dumps([1]), pickle.dumps({"entries": [Evil()]})])
def test_anything_else_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trace_0").write_bytes(content)
    assert dumped(joined(tmp_path)) == ()
    assert not Path("evil").exists()
