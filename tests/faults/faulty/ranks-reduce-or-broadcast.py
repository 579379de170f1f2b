import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn


def sync(model, leader):
    for p in model.parameters():
        if leader:
            dist.all_reduce(p.grad)
        else:
            dist.broadcast(p.grad, src=0)
        p.grad /= dist.get_world_size()


def train(rank, world, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    g = torch.Generator().manual_seed(rank)
    for step in range(60):
        x = torch.randn(32, 8, generator=g)
        loss = nn.functional.mse_loss(model(x), x[:, :2].sum(1, keepdim=True))
        opt.zero_grad()
        loss.backward()
        sync(model, leader=step < 20 or rank != 1)
        opt.step()
        if rank == 0 and step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


def main():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(train, args=(3, port), nprocs=3)


if __name__ == "__main__":
    main()
