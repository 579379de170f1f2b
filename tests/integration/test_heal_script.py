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
    def __len__(self):
        return 120

    def __getitem__(self, index):
        fault = FAULTS.get(index)
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

def kill_workers(count):
    chance = random.Random(0)
    while count:
        time.sleep(chance.random() * 0.4)
        for child in open(f"/proc/self/task/{os.getpid()}/children").read().split():
            if count and chance.random() < 0.5:
                try:
                    os.kill(int(child), chance.choice((signal.SIGKILL, signal.SIGSEGV)))
                    count -= 1
                except ProcessLookupError:
                    pass

if __name__ == "__main__":
    FAULTS = eval(sys.argv[1])
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    loader = DataLoader(Images(), batch_size=4, num_workers=2, shuffle=True)
    if len(sys.argv) > 2:
        threading.Thread(target=kill_workers, args=(int(sys.argv[2]),), daemon=True).start()
    for epoch in range(2):
        seen = []
        for inputs, indices in loader:
            optimizer.zero_grad()
            model(inputs).mean().backward()
            optimizer.step()
            seen += indices.tolist()
        print("SEEN", sorted(seen), flush=True)
"""


STALL = ("--stall-after", "2")


def run(
    unstuck: Runner, faults: dict[int, str], *words: str, flags: tuple[str, ...] = STALL
) -> tuple[Any, list[list[int]], list[dict[str, Any]]]:
    script = unstuck.folder / "train.py"
    script.write_text(SCRIPT)
    outcome = unstuck.run(script, repr(faults), *words, flags=("--on-hang", "heal", *flags))
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


@pytest.mark.parametrize("kills", [4, pytest.param(100, marks=pytest.mark.slow)])
def test_a_storm_over_an_untouched_script(unstuck: Runner, kills: int) -> None:
    outcome, seen, bad = run(unstuck, {}, str(kills))
    assert outcome.code == 0, outcome.err
    assert len(seen) == 2
    for epoch, indices in enumerate(seen):
        assert sorted(indices + [row["sample"] for row in bad if row["epoch"] == epoch]) == list(range(120))


def test_a_healthy_script_is_left_as_it_is(unstuck: Runner) -> None:
    outcome, seen, bad = run(unstuck, {}, flags=())
    assert (outcome.code, bad, outcome.report["healed"], outcome.told) == (0, [], [], [])
    assert seen == [list(range(120))] * 2
