"""A sampler that gives tensors as indices, and samples of 50 ms, in the main process."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        end = time.time() + 0.05
        while time.time() < end:
            sum(range(1000))
        return torch.randn(8)


class Shuffled:
    def __iter__(self):
        return iter(torch.randperm(100_000))

    def __len__(self):
        return 100_000


def main():
    torch.set_num_threads(1)
    model = nn.Linear(8, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, x in enumerate(DataLoader(Slow(), batch_size=16, sampler=Shuffled())):
        loss = model(x).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step == 2:
            print("READY", flush=True)


if __name__ == "__main__":
    main()
