"""Training from a slow network share; two workers wait for each object."""

import io
import random
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class ObjectStore:
    """Stands in for a bucket: a get answers after a second or two."""

    def get(self, key):
        time.sleep(random.uniform(1.0, 2.0))
        g = torch.Generator().manual_seed(hash(key) % 2**31)
        buf = io.BytesIO()
        torch.save({"x": torch.randn(3, 64, 64, generator=g), "y": int(key[-1])}, buf)
        return buf.getvalue()


class BucketDataset(Dataset):
    def __init__(self, n):
        self.keys = [f"train/{i:06d}" for i in range(n)]
        self.store = ObjectStore()

    def __len__(self):
        return len(self.keys)

    def __getitem__(self, i):
        item = torch.load(io.BytesIO(self.store.get(self.keys[i])))
        return item["x"], item["y"]


def main():
    torch.set_num_threads(1)
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, 2), nn.ReLU(), nn.Conv2d(32, 64, 3, 2), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10)
    )
    model(torch.zeros(1, 3, 64, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    loader = DataLoader(BucketDataset(5000), batch_size=4, num_workers=2, shuffle=True)
    print("READY", flush=True)
    for epoch in range(10):
        for step, (x, y) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f"epoch={epoch} step={step} loss={loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
