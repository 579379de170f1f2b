"""Ranks that train on one GPU, and then call together what there is to call. With `skips`, the last one leaves a call
out. Given a folder, each rank writes what torch's own flight recorder knows of it there."""

import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(rank: int, device: torch.device) -> None:
    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(torch.randn(512, 64), torch.randint(0, 4, (512,)))
    sampler = torch.utils.data.DistributedSampler(data, seed=1)
    loader = torch.utils.data.DataLoader(data, batch_size=16, sampler=sampler, pin_memory=True)
    model = nn.Sequential(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 4))
    model = DistributedDataParallel(model.to(device), device_ids=[device.index])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(6):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
            loss.backward()
            optimizer.step()
            if rank == 0:
                print(epoch, loss.item().hex())
    total = sum(p.double().sum() for p in model.parameters())
    if rank == 0:
        print("weights", total.item().hex())


def meet(rank: int, world: int, device: torch.device, skips: bool) -> None:
    dist.all_reduce(torch.ones(3, 4, device=device))
    dist.broadcast(torch.ones(5, dtype=torch.int64, device=device), src=0)
    shares = [torch.empty(2, device=device) for _ in range(world)]
    dist.all_gather(shares, torch.full((2,), float(rank), device=device))
    if not (skips and rank == world - 1):
        dist.all_reduce(torch.ones(7, dtype=torch.float64, device=device))
    dist.barrier()


def main() -> None:
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    backend, skips, folder = sys.argv[1], sys.argv[2] == "skips", sys.argv[3] if len(sys.argv) > 3 else ""
    device = torch.device("cuda", 0)
    torch.cuda.set_device(device)
    dist.init_process_group(backend)
    train(rank, device)
    meet(rank, world, device, skips)
    torch.cuda.synchronize()
    if folder:
        from torch._C import _distributed_c10d

        dump = _distributed_c10d._dump_nccl_trace if backend == "nccl" else _distributed_c10d._dump_fr_trace
        Path(folder, f"trace_{rank}").write_bytes(dump())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
