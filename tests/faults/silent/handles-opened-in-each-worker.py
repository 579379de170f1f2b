import mmap
import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info

WIDTH, ROWS = 64, 2000


class Positioned(Dataset):
    """One open file for all, read at given places: no offset is needed."""

    def __init__(self, path):
        self.file = open(path, "rb")
        self.rows = np.memmap(path, np.float32, "r", shape=(ROWS, WIDTH))
        self.mapped = mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_READ)

    def __len__(self):
        return ROWS

    def __getitem__(self, i):
        size = WIDTH * 4
        x = np.frombuffer(os.pread(self.file.fileno(), size, i * size), np.float32)
        assert x[0] == self.rows[i, 0] == np.frombuffer(self.mapped[i * size:i * size + 4], np.float32)[0]
        return torch.from_numpy(x.copy()), int(x.mean() > 0)


class Reopened(Dataset):
    """Open in main for a look at the length; each worker closes it and opens its own, under the same number."""

    def __init__(self, path):
        self.path = path
        self.file = open(path, "rb")
        self.length = os.fstat(self.file.fileno()).st_size // (WIDTH * 4)

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        self.file.seek(i * WIDTH * 4)
        x = np.frombuffer(self.file.read(WIDTH * 4), np.float32)
        return torch.from_numpy(x.copy()), int(x.mean() > 0)


def reopen(number):
    data = get_worker_info().dataset
    data.file.close()
    data.file = open(data.path, "rb")


def train(loader, name):
    net = nn.Sequential(nn.Linear(WIDTH, 16), nn.ReLU(), nn.Linear(16, 2))
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    for epoch in range(2):
        for x, y in loader:
            loss = nn.functional.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"{name} {epoch} loss {loss.item():.3f}", flush=True)


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.bin")
        np.random.default_rng(0).normal(size=(ROWS, WIDTH)).astype(np.float32).tofile(path)
        train(DataLoader(Positioned(path), batch_size=25, shuffle=True, num_workers=2), "pread")
        train(DataLoader(Reopened(path), batch_size=25, shuffle=True, num_workers=2, worker_init_fn=reopen), "own")
        train(DataLoader(Reopened(path), batch_size=25, shuffle=True, num_workers=1), "one worker")
        train(DataLoader(Reopened(path), batch_size=25, shuffle=True), "in main")


if __name__ == "__main__":
    main()
