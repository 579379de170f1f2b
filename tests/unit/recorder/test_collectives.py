"""What a rank notes of its collectives, in a process of its own: rows, groups, lines; and that nothing else changes."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

from unstuck.model import Flight
from unstuck.observer.flights import read_folder

HEAD = """
import sys
from unstuck.recorder import start
start.start(sys.argv[1])
import torch, torch.distributed as dist
dist.init_process_group("gloo", init_method="file://" + sys.argv[1] + "/meet", rank=0, world_size=1)
"""


TAIL = """
if dist.is_initialized():  # without this torch aborts at exit now and then
    dist.destroy_process_group()
"""


def flown(tmp_path: Path, body: str) -> Flight:
    script = tmp_path / "train.py"
    script.write_text(HEAD + textwrap.dedent(body) + TAIL)
    folder = tmp_path / "flight"
    folder.mkdir()
    subprocess.run([sys.executable, script, folder], check=True, capture_output=True, timeout=300)
    flights, _ = read_folder(folder)
    return next(flight for flight in flights if flight.world)


def test_rows(tmp_path: Path) -> None:
    flight = flown(
        tmp_path,
        """
        def reduce(x):
            dist.all_reduce(x)

        reduce(torch.ones(3, 4))
        dist.broadcast(torch.ones(2, dtype=torch.int64), src=0)
        dist.all_reduce(torch.ones(5), async_op=True).wait()
        other = dist.new_group([0])
        dist.barrier(group=other)
        try:
            dist.all_reduce("no tensor")
        except Exception:
            pass
        out = [None]
        dist.all_gather_object(out, {"a": 1})
        dist.destroy_process_group()
        """,
    )
    assert [(call.kind, call.number) for call in flight.collectives[3:4]] == [("new_group", 1)]
    calls = [call for call in flight.collectives if call.kind != "new_group"]
    assert [call.kind for call in calls[:5]] == ["all_reduce", "broadcast", "all_reduce", "barrier", "all_reduce"]
    first = calls[0]
    assert (first.number, first.dtype, first.shape, first.dimensions) == (1, "float32", (3, 4), 2)
    assert (first.line, first.function) == (9, "reduce")
    assert first.left is not None
    assert first.left > first.entered
    assert (calls[1].peer, calls[1].dtype, calls[1].number) == (0, "int64", 2)
    assert calls[2].asynchronous
    assert calls[3].group != first.group
    assert calls[3].number == 1
    assert calls[4].raised
    assert {call.kind for call in calls[5:]} == {"all_gather"}  # that is how objects are gathered
    assert (flight.rank, flight.world, flight.disbanded is not None) == (0, 1, True)


def test_gradients_of_ddp_count_where_a_backward_pass_came(tmp_path: Path) -> None:
    flight = flown(
        tmp_path,
        """
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
        for step in range(3):
            model(torch.ones(2, 3)).sum().backward()
        with model.no_sync():
            model(torch.ones(2, 3)).sum().backward()
        model(torch.ones(2, 3))  # and no backward pass
        with torch.no_grad():
            model(torch.ones(2, 3))
        dist.barrier()
        """,
    )
    kinds = [call.kind for call in flight.collectives if call.kind not in ("ddp_parameters", "ddp_broadcast")]
    assert kinds == ["ddp_gradients"] * 3 + ["barrier"]
    numbers = [call.number for call in flight.collectives]
    assert numbers == sorted(set(numbers))


def test_only_the_last_ones_are_kept(tmp_path: Path) -> None:
    flight = flown(
        tmp_path,
        """
        for step in range(200):
            dist.all_reduce(torch.ones(1))
        """,
    )
    assert flight.collective_count == 200
    assert [call.number for call in flight.collectives] == list(range(185, 201))


def test_a_forked_child_writes_its_own(tmp_path: Path) -> None:
    flight = flown(
        tmp_path,
        """
        import os
        dist.all_reduce(torch.ones(1))
        if os.fork() == 0:
            os._exit(0)
        os.wait()
        dist.all_reduce(torch.ones(1))
        """,
    )
    assert flight.collective_count == 2
