import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SCALE = float(os.environ.get("SCALE", "1"))
COOL_DOWN = 15 * SCALE


def main():
    torch.manual_seed(0)
    x = torch.randn(3000, 10)
    y = (x[:, 0] > x[:, 9]).long()
    loader = DataLoader(TensorDataset(x, y), batch_size=30, shuffle=True)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(2):
        if epoch:
            time.sleep(COOL_DOWN)
        for xb, yb in loader:
            loss = nn.functional.cross_entropy(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
