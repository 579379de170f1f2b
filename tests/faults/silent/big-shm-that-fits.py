from multiprocessing import shared_memory

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

N, C, S = 1200, 3, 160


class SharedImages(Dataset):
    def __init__(self, name):
        self.name = name
        self.shm = None

    def __len__(self):
        return N

    def __getitem__(self, i):
        if self.shm is None:
            self.shm = shared_memory.SharedMemory(name=self.name)
        images = np.ndarray((N, C, S, S), dtype=np.uint8, buffer=self.shm.buf)
        return torch.from_numpy(images[i].copy()).float().div_(255), i % 4


def main():
    torch.manual_seed(0)
    shm = shared_memory.SharedMemory(create=True, size=N * C * S * S)
    try:
        images = np.ndarray((N, C, S, S), dtype=np.uint8, buffer=shm.buf)
        rng = np.random.default_rng(0)
        base = rng.integers(0, 150, (4, C, S, S), dtype=np.uint8)
        for i in range(N):
            images[i] = base[i % 4] + rng.integers(0, 90, dtype=np.uint8)
        del images
        loader = DataLoader(SharedImages(shm.name), batch_size=32, shuffle=True, num_workers=2, prefetch_factor=6)
        model = nn.Sequential(nn.AvgPool2d(8), nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.LazyLinear(4))
        model(torch.zeros(1, C, S, S))
        opt = torch.optim.Adam(model.parameters(), lr=3e-3)
        for epoch in range(3):
            total = 0.0
            for x, y in loader:
                loss = nn.functional.cross_entropy(model(x), y)
                opt.zero_grad()
                loss.backward()
                opt.step()
                total += loss.item()
            print(f"epoch {epoch} loss {total / len(loader):.4f}", flush=True)
    finally:
        shm.close()
        shm.unlink()


if __name__ == "__main__":
    main()
