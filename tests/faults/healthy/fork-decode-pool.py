from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def decode(blob):
    return np.frombuffer(blob, dtype="float32").copy()


class PackedFrames(Dataset):
    """Groups of compressed frames; every group is decoded by a small thread pool."""

    def __init__(self, n=240, frames=4, dim=24):
        rng = np.random.default_rng(2)
        self.groups = [[rng.normal(size=dim).astype("float32").tobytes() for _ in range(frames)] for _ in range(n)]
        self.pool = ThreadPoolExecutor(max_workers=4)
        self.mean = np.mean([f for g in self.groups for f in self.pool.map(decode, g)], axis=0)
        self.pool.shutdown()
        self.pool = None

    def __len__(self):
        return len(self.groups)

    def __getitem__(self, i):
        if self.pool is None:
            self.pool = ThreadPoolExecutor(max_workers=4)
        frames = list(self.pool.map(decode, self.groups[i]))
        x = torch.from_numpy(np.stack(frames) - self.mean)
        return x, (x.sum() > 0).long()


def main():
    torch.manual_seed(0)
    data = PackedFrames()
    print(f"{len(data)} groups, mean norm {np.linalg.norm(data.mean):.3f}", flush=True)
    loader = DataLoader(data, batch_size=12, shuffle=True, num_workers=2)
    model = nn.Sequential(nn.Flatten(), nn.Linear(96, 32), nn.ReLU(), nn.Linear(32, 2))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(3):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
