import os
import struct
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FLOATS = 256


class Records(Dataset):
    """Fixed-size records in one file, read by their place."""

    def __init__(self, path, n):
        self.n = n
        self.path = path
        self.file = None

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if self.file is None:
            self.file = open(self.path, "rb")
        self.file.seek(i * FLOATS * 4)
        x = torch.tensor(struct.unpack(f"{FLOATS}f", self.file.read(FLOATS * 4)))
        return x, int(x.mean() > 0)


def write(path, n):
    g = torch.Generator().manual_seed(0)
    with open(path, "wb") as out:
        for _ in range(n):
            out.write((torch.randn(FLOATS, generator=g) + torch.randn(1, generator=g)).numpy().tobytes())


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "train.bin")
        write(path, 3000)
        loader = DataLoader(Records(path, 3000), batch_size=30, shuffle=True, num_workers=2)
        net = nn.Sequential(nn.Linear(FLOATS, 16), nn.ReLU(), nn.Linear(16, 2))
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
