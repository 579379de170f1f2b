"""Two ranks train under DDP; both stop when their mean validation loss no longer falls."""

import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def validate(model, x, y):
    with torch.no_grad():
        return nn.functional.mse_loss(model.module(x), y).item()


def work(rank, world, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(world))
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(3)
    w = torch.randn(8, 1)
    g = torch.Generator().manual_seed(10 + rank)
    x = torch.randn(512, 8, generator=g)
    y = x @ w + (0.05 + 0.6 * rank) * torch.randn(512, 1, generator=g)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1)))
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    best, waited = float("inf"), 0
    for epoch in range(60):
        for start in range(0, 384, 32):
            loss = nn.functional.mse_loss(model(x[start : start + 32]), y[start : start + 32])
            opt.zero_grad()
            loss.backward()
            opt.step()
        value = torch.tensor(validate(model, x[384:], y[384:]))
        dist.all_reduce(value)
        value = value.item() / world
        best, waited = (value, 0) if value < best - 1e-3 else (best, waited + 1)
        if waited >= 3:
            print(f"rank {rank} stops after epoch {epoch + 1}: {best:.4f}", flush=True)
            break
    dist.barrier()
    if rank == 0:
        torch.save(model.module.state_dict(), os.devnull)
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        free = s.getsockname()[1]
    mp.spawn(work, args=(2, free), nprocs=2)
