"""A training under torchrun with a fault on rank 1 only: `torchrun rank_faults.py FAULT`."""

import os
import sys
import threading

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

FAULT, BAD_RANK, BAD_SAMPLE, BAD_STEP = sys.argv[1], 1, 300, 20
LOCK = threading.Lock()


class Samples(Dataset):
    def __len__(self):
        return 320 * dist.get_world_size()

    def __getitem__(self, i):
        bad = dist.get_rank() == BAD_RANK and i >= BAD_SAMPLE
        if bad and FAULT == "raise":
            raise ValueError(f"sample {i} is damaged")
        if bad and FAULT == "lock":
            with LOCK:
                pass
        while bad and FAULT == "spin":
            i += 1
        x = torch.full((8,), i % 13 / 13)
        if bad and FAULT == "nan":
            x[0] = float("nan")
        return x, x.sum().view(1)


def misbehave(step):
    if FAULT == "kill":
        os.kill(os.getpid(), 9)
    elif FAULT == "exit":
        sys.exit(0)
    elif FAULT == "skip":
        dist.barrier()
    elif FAULT == "memory":
        kept = []
        while True:
            kept.append(torch.ones(1 << 22))
    while FAULT == "loop":
        step += 1


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = Samples()
    sampler = DistributedSampler(data, shuffle=False)
    loader = DataLoader(data, batch_size=8, sampler=sampler, num_workers=1 if FAULT == "lock" else 0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    if dist.get_rank() == BAD_RANK and FAULT == "lock":
        LOCK.acquire()
    for epoch in range(2):
        for step, (x, y) in enumerate(loader):
            if dist.get_rank() == BAD_RANK and step == BAD_STEP:
                misbehave(step)
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if dist.get_rank() == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


main()
