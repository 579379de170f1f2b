"""Short epochs with spawned, non-persistent workers: much of the time goes into starting them."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Spirals(Dataset):
    def __init__(self, n=2000):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        label = i % 3
        r = torch.rand((), generator=g)
        angle = 4 * r + 2.1 * label + 0.1 * torch.randn((), generator=g)
        return torch.stack([r * angle.cos(), r * angle.sin()]), label


def main():
    torch.set_num_threads(1)
    loader = DataLoader(Spirals(), batch_size=32, shuffle=True, num_workers=2, multiprocessing_context="spawn")
    model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    print("READY", flush=True)
    for epoch in range(10_000):
        start = time.time()
        correct = 0
        for x, y in loader:
            out = model(x)
            loss = nn.functional.cross_entropy(out, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            correct += (out.argmax(1) == y).sum().item()
        print(f"epoch {epoch} acc {correct / len(loader.dataset):.3f} ({time.time() - start:.1f}s)", flush=True)


if __name__ == "__main__":
    main()
