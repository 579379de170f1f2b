"""Processes of somebody else keep every processor busy; alone, the worker would keep up with ease."""

import os
import subprocess
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Computed(Dataset):
    def __len__(self):
        return 3000

    def __getitem__(self, index):
        total = 0
        for number in range(12_000):
            total += number * index % 7
        x = torch.randn(16, generator=torch.Generator().manual_seed(index + total % 2))
        return x, x[:3].sum(0, keepdim=True)


def neighbours(count, seconds):
    """Not ours: they belong to nobody in this run's tree."""
    burn = f"timeout {seconds} sh -c 'while :; do :; done' &"
    subprocess.run(["setsid", "sh", "-c", burn * count], stdin=subprocess.DEVNULL, check=True)


def main():
    torch.manual_seed(0)
    neighbours(5 * len(os.sched_getaffinity(0)), 20)
    model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    began = time.monotonic()
    for x, y in DataLoader(Computed(), batch_size=8, num_workers=1):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.025)
        if time.monotonic() - began > 18:
            break
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
