import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def record(root, n=200):
    rng = np.random.default_rng(4)
    for i in range(n):
        path = os.path.join(root, f"sensor_{i:03d}.bin")
        if i == 141:
            os.mkfifo(path)
        else:
            rng.normal(size=30).astype("float32").tofile(path)


class SensorFiles(Dataset):
    def __init__(self, root):
        self.paths = sorted(e.path for e in os.scandir(root))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        with open(self.paths[i], "rb") as f:
            x = torch.frombuffer(bytearray(f.read()), dtype=torch.float32)
        return x[:-1], x[-1:]


def main():
    torch.manual_seed(0)
    root = tempfile.mkdtemp(prefix="sensors_")
    record(root)
    loader = DataLoader(SensorFiles(root), batch_size=10, num_workers=2)
    model = nn.Linear(29, 1)
    opt = torch.optim.SGD(model.parameters(), lr=1e-2)
    for epoch in range(4):
        for step, (x, y) in enumerate(loader):
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            print(f"epoch {epoch} step {step} mse {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
