"""Ranks on a GPU: the same losses bit for bit, and the recorder's calls beside those of torch's own flight recorder."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Outcome, Runner
from tests.integration.test_ranks import SCRIPTS, run, torchrun
from unstuck.model import Collective, Flight
from unstuck.observer.collective_dumps import dumped
from unstuck.observer.flights import read_folder
from unstuck.recorder.records.ranks import WorldJoined

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

SCRIPT = SCRIPTS / "ranks_on_gpu.py"
BACKENDS = [
    pytest.param("nccl", 1, marks=pytest.mark.skipif(not torch.distributed.is_nccl_available(), reason="no NCCL")),
    ("gloo", 2),  # NCCL refuses two ranks on one GPU
]


def watched(unstuck: Runner, ranks: int, *words: str | Path, flags: tuple[str, ...] = ()) -> Outcome:
    return run(unstuck, *torchrun(ranks, SCRIPT, *words), flags=flags, env={"TORCH_FR_BUFFER_SIZE": "2000"})


def flight_of(unstuck: Runner, rank: int) -> Flight:
    (folder,) = (unstuck.folder / ".unstuck").glob("*/flight")
    flights, _ = read_folder(folder)
    return next(flight for flight in flights if flight.rank == rank)


@pytest.mark.parametrize(("backend", "ranks"), BACKENDS)
def test_the_same_losses(unstuck: Runner, backend: str, ranks: int) -> None:
    command = list(map(str, torchrun(ranks, SCRIPT, backend, "healthy")))
    alone = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=300, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    seen = watched(unstuck, ranks, backend, "healthy")
    assert (seen.code, seen.told, seen.report["probes_off"]) == (0, [], []), seen.err[-3000:]
    assert seen.out == alone.stdout
    assert "weights" in seen.out


@pytest.mark.parametrize(("backend", "ranks"), BACKENDS)
def test_calls_beside_those_of_torchs_flight_recorder(
    unstuck: Runner, tmp_path: Path, backend: str, ranks: int
) -> None:
    assert watched(unstuck, ranks, backend, "healthy", tmp_path).code == 0
    for rank in range(ranks):
        torchs = dumped(WorldJoined(pid=1, rank=rank, world=ranks, dumps=[str(tmp_path / "trace_")]))
        ours = flight_of(unstuck, rank).collectives
        assert [about(call) for call in torchs if call.function == "meet"] == [
            about(call) for call in ours if call.function == "meet"
        ]
        assert "ddp_gradients" in [call.kind for call in ours], "what DDP starts from C++"


def about(call: Collective) -> tuple[object, ...]:
    plain = call.kind != "barrier"  # NCCL makes one of an all_reduce of one number
    return call.kind, call.file, call.line, *((call.dtype, call.shape) if plain else ())


def test_the_rank_that_skips_a_call(unstuck: Runner) -> None:
    seen = watched(unstuck, 2, "gloo", "skips", flags=("--on-hang", "stop", "--stall-after", "10"))
    first = seen.loud[0]
    assert (seen.code, first["rule"]) in [(3, "rank-skips-collective"), (3, "collectives-differ")], seen.err[-3000:]
    assert first["where"]["file"] == str(SCRIPT)
    assert 41 <= first["where"]["line"] <= 43, first
