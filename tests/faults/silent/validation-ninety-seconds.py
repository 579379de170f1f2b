import os
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SCALE = float(os.environ.get("SCALE", "1"))


@torch.no_grad()
def permutation_importance(model, x, y, seconds=90):
    """Shuffle one column at a time, many times, and see how much the accuracy drops."""
    rng = np.random.default_rng(0)
    base = (model(x).argmax(1) == y).float().mean().item()
    drops = [[] for _ in range(x.shape[1])]
    end = time.monotonic() + seconds * SCALE
    while time.monotonic() < end:
        for column in range(x.shape[1]):
            shuffled = x.clone()
            shuffled[:, column] = x[torch.from_numpy(rng.permutation(len(x))), column]
            drops[column].append(base - (model(shuffled).argmax(1) == y).float().mean().item())
    return [float(np.mean(d)) for d in drops]


def main():
    torch.manual_seed(0)
    x = torch.randn(6000, 12)
    y = (2 * x[:, 3] + x[:, 7] > 0).long()
    loader = DataLoader(TensorDataset(x[:5000], y[:5000]), batch_size=25, shuffle=True)
    model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 2))
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(3):
        for xb, yb in loader:
            loss = nn.functional.cross_entropy(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
    model.eval()
    drops = permutation_importance(model, x[5000:], y[5000:])
    print("most important column", int(np.argmax(drops)), flush=True)


if __name__ == "__main__":
    main()
