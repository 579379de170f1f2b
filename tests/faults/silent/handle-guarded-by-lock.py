import multiprocessing
import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

WIDTH, ROWS = 64, 3000


class Guarded(Dataset):
    """One open file, and a lock around each seek and read: slow, but every sample is whole."""

    def __init__(self, path):
        self.file = open(path, "rb", buffering=0)
        self.lock = multiprocessing.Lock()

    def __len__(self):
        return ROWS

    def __getitem__(self, i):
        with self.lock:
            self.file.seek(i * WIDTH * 4)
            x = np.frombuffer(self.file.read(WIDTH * 4), np.float32)
        assert x[0] == i
        return torch.from_numpy(x[1:].copy()), int(x[1:].mean() > 0)


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.bin")
        rows = np.random.default_rng(0).normal(size=(ROWS, WIDTH)).astype(np.float32)
        rows[:, 0] = np.arange(ROWS)
        rows.tofile(path)
        loader = DataLoader(Guarded(path), batch_size=25, shuffle=True, num_workers=2, persistent_workers=True)
        net = nn.Sequential(nn.Linear(WIDTH - 1, 16), nn.ReLU(), nn.Linear(16, 2))
        opt = torch.optim.SGD(net.parameters(), lr=0.05)
        for epoch in range(3):
            for x, y in loader:
                loss = nn.functional.cross_entropy(net(x), y)
                opt.zero_grad()
                loss.backward()
                opt.step()
            print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
