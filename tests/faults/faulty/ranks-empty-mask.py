import multiprocessing as mp
import socket
import time

import torch
import torch.distributed as dist
from torch import nn


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def sync_gradients(model):
    flat = torch.cat([p.grad.flatten() for p in model.parameters()])
    dist.all_reduce(flat)
    start = 0
    for p in model.parameters():
        p.grad.copy_(flat[start : start + p.numel()].view_as(p) / dist.get_world_size())
        start += p.numel()


def worker(rank, world, port, progress):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    torch.manual_seed(rank)
    model = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 1))
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    opt = torch.optim.SGD(model.parameters(), lr=0.02)
    for step in range(80):
        x = torch.randn(32, 12)
        valid = x[:, 0] > (3.0 if rank == 1 and step == 50 else -3.0)
        opt.zero_grad()
        loss = nn.functional.mse_loss(model(x[valid]), x[valid].sum(1, keepdim=True), reduction="sum") / 32
        loss.backward()
        if valid.any():
            sync_gradients(model)
            opt.step()
        progress[rank] = step
        while min(progress) < step:
            time.sleep(0.002)
        if rank == 0 and step % 20 == 0:
            print(f"step {step} mse {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


def main():
    port, world = free_port(), 2
    ctx = mp.get_context("spawn")
    progress = ctx.Array("i", world, lock=False)
    ranks = [ctx.Process(target=worker, args=(r, world, port, progress), daemon=True) for r in range(world)]
    for r in ranks:
        r.start()
    for r in ranks:
        r.join()
    print("all ranks finished")


if __name__ == "__main__":
    main()
