"""Two gloo ranks started with torch.multiprocessing.spawn."""

import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class ResMLP(nn.Module):
    def __init__(self, width=384, depth=5):
        super().__init__()
        self.inp = nn.Linear(32, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.out = nn.Linear(width, 32)

    def forward(self, x):
        x = self.inp(x)
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return self.out(x)


def worker(rank, world_size, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world_size)
    torch.manual_seed(rank)
    model = DDP(ResMLP())
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    for step in range(10_000_000):
        x = torch.randn(128, 32)
        loss = nn.functional.mse_loss(model(x), x.cumsum(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            if step == 0:
                print("READY", flush=True)
            if step % 50 == 0:
                print(f"step {step} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


def main():
    world_size = 2
    mp.spawn(worker, args=(world_size, free_port()), nprocs=world_size)


if __name__ == "__main__":
    main()
