import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn


def train(rank, world, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    log = None
    if rank == 0:
        log = dist.new_group([0])
    metrics = dist.new_group(list(range(world)))
    model = nn.Linear(10, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(40):
        x = torch.randn(16, 10)
        loss = nn.functional.mse_loss(model(x), x.mean(1, keepdim=True))
        opt.zero_grad()
        loss.backward()
        dist.all_reduce(model.weight.grad, group=metrics)
        opt.step()
    if rank == 0:
        dist.barrier(group=log)
    dist.destroy_process_group()
    print(f"rank {rank} done", flush=True)


def main():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(train, args=(2, port), nprocs=2)


if __name__ == "__main__":
    main()
