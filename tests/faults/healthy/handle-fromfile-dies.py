import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Series(Dataset):
    """Series of different lengths, each with its length before it; where each begins is kept."""

    def __init__(self, path, begins):
        self.begins = begins
        self.path = path
        self.file = None

    def __len__(self):
        return len(self.begins)

    def __getitem__(self, i):
        if self.file is None:
            self.file = open(self.path, "rb", buffering=0)
        self.file.seek(self.begins[i])
        length = np.fromfile(self.file, np.int32, 1)[0]
        x = np.fromfile(self.file, np.float32, length)
        return torch.from_numpy(np.resize(x, 60).clip(-9, 9)), i % 2


def write(path, n):
    rng = np.random.default_rng(0)
    begins = []
    with open(path, "wb") as out:
        for i in range(n):
            begins.append(out.tell())
            length = int(rng.integers(20, 60))
            out.write(np.int32(length).tobytes())
            out.write((rng.normal(size=length) + i % 2).astype(np.float32).tobytes())
    return begins


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "series.bin")
        loader = DataLoader(Series(path, write(path, 4000)), batch_size=20, num_workers=3)
        net = nn.Sequential(nn.Linear(60, 16), nn.ReLU(), nn.Linear(16, 2))
        opt = torch.optim.Adam(net.parameters(), lr=1e-3)
        for epoch in range(3):
            for x, y in loader:
                loss = nn.functional.cross_entropy(net(x), y)
                opt.zero_grad()
                loss.backward()
                opt.step()
            print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
