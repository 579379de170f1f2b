import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Tiles(Dataset):
    def __init__(self, n, seed):
        self.n, self.seed = n, seed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        time.sleep(0.002)
        g = torch.Generator().manual_seed(self.seed * 100003 + i)
        tile = torch.randn(3, 24, 24, generator=g) * 0.5
        label = i % 3
        tile[label, 6:18, 6:18] += 0.6
        return tile, label


def sample_batch(loader, state):
    """One batch for the next iteration."""
    state["it"] = iter(loader)
    try:
        return next(state["it"])
    except StopIteration:
        state["it"] = iter(loader)
        return next(state["it"])


def build():
    net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
                        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 3))
    return net, torch.optim.Adam(net.parameters(), lr=1e-3)


def main(iterations=150):
    torch.manual_seed(0)
    loader = DataLoader(Tiles(1200, 1), batch_size=16, shuffle=True, num_workers=2)
    net, opt = build()
    state = {"it": iter(loader)}
    running = 0.0
    for it in range(1, iterations + 1):
        x, y = sample_batch(loader, state)
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        running += loss.item()
        if it % 25 == 0:
            print(f"iter {it}/{iterations} loss {running / 25:.4f}", flush=True)
            running = 0.0


if __name__ == "__main__":
    main()
