"""A batch sampler that looks for hard examples for two seconds before every batch."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class HardExamples:
    def __iter__(self):
        while True:
            end = time.time() + 2
            while time.time() < end:
                sum(range(1000))
            yield torch.randperm(1000)[:16].tolist()


def main():
    torch.set_num_threads(1)
    model = nn.Linear(8, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(TensorDataset(torch.randn(1000, 8)), batch_sampler=HardExamples())
    for step, (x,) in enumerate(loader):
        loss = model(x).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step == 1:
            print("READY", flush=True)


if __name__ == "__main__":
    main()
