import multiprocessing as mp
import socket

import torch
import torch.distributed as dist
from torch import nn


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def average(model, world):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= world


def fit(rank, world, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    torch.manual_seed(0)
    x = torch.randn(400, 6, generator=torch.Generator().manual_seed(rank))
    y = x.sum(1, keepdim=True) * (1 + rank)
    model = nn.Linear(6, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    best, since = float("inf"), 0
    for step in range(400):
        opt.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        average(model, world)
        opt.step()
        mean = loss.detach().clone()
        best, since = (mean.item(), 0) if mean.item() < best - 1e-3 else (best, since + 1)
        if since > 5:
            print(f"rank {rank} stops at step {step}, loss {best:.4f}", flush=True)
            break
    done = torch.ones(1)
    dist.all_reduce(done)
    dist.destroy_process_group()


def main():
    port, world = free_port(), 2
    ctx = mp.get_context("spawn")
    ranks = [ctx.Process(target=fit, args=(r, world, port)) for r in range(world)]
    for r in ranks:
        r.start()
    for r in ranks:
        r.join()
    if any(r.exitcode for r in ranks):
        raise SystemExit(1)
    print("all ranks finished")


if __name__ == "__main__":
    main()
