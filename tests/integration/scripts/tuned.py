"""A training whose dataset is of one kind: waits, computes nothing, or refuses to work in a worker."""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info

KIND, WORKERS, STEP = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])


class Rows(Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, index):
        if "unstuck" in sys.modules:
            raise SystemError("the installed unstuck was loaded")
        if KIND == "waits":
            time.sleep(0.004)
        if KIND == "refuses" and get_worker_info() is not None:
            raise ValueError("not in a worker")
        return torch.randn(8), torch.zeros(())


def main():
    print("begins", sys.argv[1:], repr(sys.stdin.readline()), flush=True)
    loader = DataLoader(Rows(), batch_size=16, shuffle=True, num_workers=WORKERS)
    model = nn.Linear(8, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(1000):
        for x, y in loader:
            opt.zero_grad()
            (model(x).squeeze(1) - y).pow(2).mean().backward()
            opt.step()
            time.sleep(STEP)
    print("trained to the end")


if __name__ == "__main__":
    main()
