import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

ROWS, WIDTH = 600, 2048


class Features(Dataset):
    """Precomputed features in one flat file."""

    def __init__(self, path):
        self.rows = np.memmap(path, dtype="float32", mode="r", shape=(ROWS, WIDTH))

    def __len__(self):
        return ROWS

    def __getitem__(self, i):
        row = np.array(self.rows[i])
        return torch.from_numpy(row), int(row[0] > 0)


def extract(path):
    rng = np.random.default_rng(0)
    rng.normal(size=(ROWS, WIDTH)).astype("float32").tofile(path)


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as root:
        path = os.path.join(root, "features.bin")
        extract(path)
        data = Features(path)
        loader = DataLoader(data, batch_size=20, num_workers=1)
        net = nn.Linear(WIDTH, 2)
        opt = torch.optim.SGD(net.parameters(), lr=1e-3)
        for epoch in range(2):
            for x, y in loader:
                loss = nn.functional.cross_entropy(net(x), y)
                opt.zero_grad()
                loss.backward()
                opt.step()
            print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
