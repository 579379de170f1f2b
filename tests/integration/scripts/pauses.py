"""Trains, stands still once for the seconds given, then trains on for the seconds given and ends well."""

import sys
import time

import torch
from torch.utils.data import DataLoader, TensorDataset

still, after = float(sys.argv[1]), float(sys.argv[2])
x = torch.arange(32.0).reshape(16, 2)
weight = torch.zeros(2, requires_grad=True)
opt = torch.optim.SGD([weight], lr=1e-4)


def steps():
    for (batch,) in DataLoader(TensorDataset(x), batch_size=4):
        loss = (batch @ weight - 1).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()


for _ in range(10):
    steps()
print("still", flush=True)
time.sleep(still)
print("moving", flush=True)
end = time.monotonic() + after
while time.monotonic() < end:
    steps()
    time.sleep(0.05)
print("done", flush=True)
