"""A training that computes on one thread; its workers, forked for each pass, on two. Then a child that just ends."""

import os
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Waves(Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        x = torch.full((3, 224, 224), index % 7 / 7)
        return (x * 1.5).sin() + torch.rand(3, 1, 1), index % 3


def two_threads(_):
    torch.set_num_threads(2)


class Few(nn.Module):
    """So few numbers that no operation is shared among threads."""

    def __init__(self):
        super().__init__()
        self.weights = nn.Parameter(torch.rand(4, 3))

    def forward(self, x):
        return (x[:, 0, 0, :3].unsqueeze(1) * self.weights).sum((1, 2))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(2)
    loader = DataLoader(Waves(), batch_size=8, num_workers=1, worker_init_fn=two_threads)
    model = Few()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(3):
        for x, y in loader:
            loss = ((model(x) - y) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.9f}", flush=True)
    child = os.fork()
    if not child:
        print("the child ends", flush=True)
        sys.exit(0)
    os.waitpid(child, 0)
    print("it has ended", flush=True)


main()
