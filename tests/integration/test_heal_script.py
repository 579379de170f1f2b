"""`unstuck run --on-hang heal`: the loaders of a script that knows nothing of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Runner

SCRIPT = """
import os, random, signal, sys, threading, time
import torch
from torch.utils.data import DataLoader, Dataset

class Images(Dataset):
    def __init__(self, faults):
        self.faults = faults

    def __len__(self):
        return 120

    def __getitem__(self, index):
        fault = self.faults.get(index)
        if fault == "raises":
            raise OSError(f"image {index} is truncated")
        if fault == "hangs":
            time.sleep(600)
        if fault == "segfaults":
            os.kill(os.getpid(), signal.SIGSEGV)
        if fault == "exits":
            os._exit(1)
        time.sleep(0.002)
        return torch.full((8,), float(index)), index

def kill_workers(left):
    # Between two kills some batches come: else they would be hit so often that they look guilty.
    chance = random.Random(0)
    while left:
        wanted = steps + 3
        while steps < wanted:
            time.sleep(0.001)
        time.sleep(chance.random() * 0.02)
        workers = open(f"/proc/self/task/{os.getpid()}/children").read().split()
        if workers:
            try:
                os.kill(int(chance.choice(workers)), chance.choice((signal.SIGKILL, signal.SIGSEGV)))
                left -= 1
            except ProcessLookupError:
                pass

if __name__ == "__main__":
    FAULTS, kills, method = eval(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    loader = DataLoader(Images(FAULTS), batch_size=4, num_workers=2, shuffle=True, multiprocessing_context=method)
    steps, epoch = 0, 0
    killer = threading.Thread(target=kill_workers, args=(kills,), daemon=True)
    killer.start()
    while epoch < 2 or killer.is_alive():
        seen = []
        for inputs, indices in loader:
            optimizer.zero_grad()
            model(inputs).mean().backward()
            optimizer.step()
            seen += indices.tolist()
            steps += 1
        print("SEEN", sorted(seen), flush=True)
        epoch += 1
"""


STALL = ("--stall-after", "2")


def run(
    unstuck: Runner, faults: dict[int, str], kills: int = 0, method: str = "fork", flags: tuple[str, ...] = STALL
) -> tuple[Any, list[list[int]], list[dict[str, Any]]]:
    script = unstuck.folder / "train.py"
    script.write_text(SCRIPT)
    outcome = unstuck.run(script, repr(faults), str(kills), method, flags=("--on-hang", "heal", *flags), limit=600)
    seen = [json.loads(line.removeprefix("SEEN ")) for line in outcome.out.splitlines() if line.startswith("SEEN ")]
    (folder,) = [path for path in Path(unstuck.folder / ".unstuck").iterdir() if path.is_dir()]
    file = folder / "bad.jsonl"
    return outcome, seen, [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.mark.parametrize(
    "faults", [{17: "segfaults", 44: "raises"}, pytest.param({5: "hangs", 60: "exits"}, marks=pytest.mark.slow)]
)
def test_bad_samples_of_an_untouched_script(unstuck: Runner, faults: dict[int, str]) -> None:
    outcome, seen, bad = run(unstuck, faults)
    assert outcome.code == 0, outcome.err
    assert seen == [[index for index in range(120) if index not in faults]] * 2
    assert sorted(row["sample"] for row in bad) == sorted([*faults] * 2)
    for index in faults:
        assert f"unstuck: sample {index} is bad" in outcome.err
    acts = outcome.report["healed"]
    assert sorted(act["sample"] for act in acts if act["act"] == "quarantined") == sorted([*faults] * 2)
    assert any(act["act"] == "replaced worker" for act in acts)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_other_start_methods(unstuck: Runner, method: str) -> None:
    outcome, seen, bad = run(unstuck, {17: "segfaults"}, method=method)
    assert outcome.code == 0, outcome.err
    assert seen == [[index for index in range(120) if index != 17]] * 2
    assert [row["sample"] for row in bad] == [17, 17]


@pytest.mark.parametrize("kills", [6, pytest.param(200, marks=pytest.mark.slow)])
def test_a_storm_over_an_untouched_script(unstuck: Runner, kills: int) -> None:
    outcome, seen, bad = run(unstuck, {}, kills, flags=())
    assert outcome.code == 0, outcome.err
    assert len(seen) >= 2
    replaced = [act for act in outcome.report["healed"] if act["act"] == "replaced worker"]
    assert len(replaced) >= kills // 2, "others are killed when their epoch is over"
    for epoch, indices in enumerate(seen):
        assert sorted(indices + [row["sample"] for row in bad if row["epoch"] == epoch]) == list(range(120))


def test_a_healthy_script_is_left_as_it_is(unstuck: Runner) -> None:
    outcome, seen, bad = run(unstuck, {}, flags=())
    assert (outcome.code, bad, outcome.report["healed"], outcome.told) == (0, [], [], [])
    assert seen == [list(range(120))] * 2
