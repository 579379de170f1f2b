import subprocess
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

DECODER = """
import random, sys
rng = random.Random(0)
for i in range(2000):
    if i % 2:
        print(f"[decoder] frame {i}: non-monotonous timestamp, previous {i - 1}, current {i}", file=sys.stderr)
    print(" ".join(f"{rng.gauss(0, 1):.3f}" for _ in range(12)), flush=True)
"""


class DecodedFrames(IterableDataset):
    """Frames as the command line decoder prints them."""

    def __len__(self):
        return 2000

    def __iter__(self):
        proc = subprocess.Popen(
            [sys.executable, "-c", DECODER], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for line in proc.stdout:
            x = torch.tensor([float(v) for v in line.split()])
            yield x, x[:3].sum(0, keepdim=True)
        if proc.wait() != 0:
            raise RuntimeError(proc.stderr.read())


def main():
    torch.manual_seed(0)
    loader = DataLoader(DecodedFrames(), batch_size=20)
    model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 1))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(3):
        for step, (x, y) in enumerate(loader):
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 20 == 0:
                print(f"epoch {epoch} step {step} mse {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
