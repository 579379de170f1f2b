"""Molecule-like graphs: most are tiny, a few need seconds of conformer search."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def relax(points, rounds):
    """Push the points apart, pairwise, a given number of rounds."""
    for _ in range(rounds):
        diff = points[:, None] - points[None]
        dist2 = (diff**2).sum(-1) + 1.0
        points = points + 1e-3 * (diff / dist2[..., None]).sum(1)
    return points


class Molecules(Dataset):
    def __init__(self, n=20_000, seed=0):
        rng = np.random.default_rng(seed)
        self.rounds = np.full(n, 3)
        hard = rng.random(n) < 0.03
        self.rounds[hard] = rng.integers(16_000, 24_000, hard.sum())

    def __len__(self):
        return len(self.rounds)

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        points = relax(rng.normal(size=(48, 3)), int(self.rounds[i]))
        d = np.sqrt(((points[:, None] - points[None]) ** 2).sum(-1))
        hist, _ = np.histogram(d, bins=64, range=(0, 6))
        return torch.tensor(hist, dtype=torch.float32) / 100, torch.tensor(d.mean(), dtype=torch.float32)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(64, 128), nn.SiLU(), nn.Linear(128, 128), nn.SiLU(), nn.Linear(128, 1))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(Molecules(), batch_size=16, shuffle=True, num_workers=2)
    step = 0
    for epoch in range(1000):
        for x, y in loader:
            loss = (model(x).squeeze(-1) - y).square().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step == 0:
                print("READY", flush=True)
            step += 1
            if step % 5 == 0:
                print(f"epoch {epoch} step {step} mse {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
