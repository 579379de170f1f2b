import os
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SCALE = float(os.environ.get("SCALE", "1"))


class Recordings(Dataset):
    """Most recordings are short; a few need seconds to fetch and to decode."""

    def __init__(self, n=160):
        rng = np.random.default_rng(0)
        self.cost = np.exp(rng.uniform(np.log(0.001), np.log(0.02), size=n))
        self.cost[[31, 77, 120]] = [2.5, 8.0, 5.0]
        self.remote = rng.random(n) < 0.5

    def __len__(self):
        return len(self.cost)

    def __getitem__(self, i):
        seconds = float(self.cost[i]) * SCALE
        if self.remote[i]:
            time.sleep(seconds / 2)
            seconds /= 2
        end = time.monotonic() + seconds
        g = torch.Generator().manual_seed(i)
        x = torch.randn(16, generator=g)
        spectrum = torch.randn(64, 64, generator=g)
        while time.monotonic() < end:
            spectrum = torch.tanh(spectrum @ spectrum.T / 64)
        return x, x[:4].sum(0, keepdim=True)


def main():
    torch.manual_seed(0)
    loader = DataLoader(Recordings(), batch_size=8, num_workers=2)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step, (x, y) in enumerate(loader):
        loss = nn.functional.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"step {step} mse {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
