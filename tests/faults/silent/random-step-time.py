import random
import time

import torch
from torch import nn


class RemoteFeatures:
    """Feature server with uneven answer times."""

    def __init__(self, seed=0):
        self.g = torch.Generator().manual_seed(seed)
        self.rng = random.Random(seed)
        self.w = torch.randn(24, 3, generator=self.g)

    def fetch(self, n):
        time.sleep(self.rng.choice([0.002, 0.005, 0.01, 0.02, 0.06]))
        x = torch.randn(n, 24, generator=self.g)
        return x, (x @ self.w + torch.randn(n, 3, generator=self.g)).argmax(1)


def main():
    torch.manual_seed(0)
    server = RemoteFeatures()
    model = nn.Sequential(nn.Linear(24, 128), nn.ReLU(), nn.Linear(128, 3))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(1, 601):
        x, y = server.fetch(random.Random(step).choice([8, 16, 32, 64]))
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 60 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
