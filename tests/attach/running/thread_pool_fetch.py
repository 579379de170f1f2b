"""No workers: the dataset fetches the samples of a batch from slow storage with a thread pool."""

import random
import time
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def download(index):
    time.sleep(random.uniform(1.0, 2.0))  # answer of the storage
    g = torch.Generator().manual_seed(index)
    return torch.randn(3, 48, 48, generator=g), index % 4


class RemoteImages(Dataset):
    def __init__(self, n, threads=8):
        self.n = n
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix="download")

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return download(i)

    def __getitems__(self, indices):
        return list(self.pool.map(download, indices))


def main():
    torch.set_num_threads(1)
    loader = DataLoader(RemoteImages(20_000), batch_size=16, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, stride=2),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, stride=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 4),
    )
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4)
    for epoch in range(100):
        for step, (x, y) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if epoch == 0 and step == 0:
                print("READY", flush=True)
            print(f"epoch {epoch} step {step} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
