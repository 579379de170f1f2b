"""Fully sharded data parallel on the CPU, two gloo ranks."""

import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

MAX_MINUTES = 6


class Block(nn.Module):
    def __init__(self, dim=256):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 4 * dim)
        self.down = nn.Linear(4 * dim, dim)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), *[Block() for _ in range(6)], nn.Linear(256, 64))
    for module in model:
        fully_shard(module, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    torch.manual_seed(100 + rank)
    start = time.time()
    for step in range(1_000_000):
        x = torch.randn(128, 64)
        loss = nn.functional.mse_loss(model(x), x.sort(1).values)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step == 0:
            print("READY", flush=True)
        if step % 20 == 0:
            total = loss.detach().clone()
            dist.all_reduce(total)
            over = torch.tensor(float(time.time() - start > 60 * MAX_MINUTES))
            dist.all_reduce(over)
            if rank == 0:
                print(f"step {step} loss {total.item() / 2:.4f}", flush=True)
            if over:
                break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
