import multiprocessing as mp
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class SharedReader(Dataset):
    """One slow device, four workers: every read holds the lock."""

    def __init__(self, n=400):
        self.n, self.lock = n, mp.Lock()

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        with self.lock:
            time.sleep(0.03)
        g = torch.Generator().manual_seed(i)
        x = torch.randn(10, generator=g)
        return x, x.abs().sum(0, keepdim=True)


def main():
    torch.manual_seed(0)
    loader = DataLoader(SharedReader(), batch_size=25, num_workers=4)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step, (x, y) in enumerate(loader):
        loss = nn.functional.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"step {step} mse {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
