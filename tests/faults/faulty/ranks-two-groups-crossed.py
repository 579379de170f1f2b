import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn


def train(rank, world, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    metrics = dist.new_group(list(range(world)))
    torch.manual_seed(rank)
    model = nn.Linear(10, 1)
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(80):
        x = torch.randn(16, 10)
        loss = nn.functional.mse_loss(model(x), x.mean(1, keepdim=True))
        opt.zero_grad()
        loss.backward()
        if step == 50 and rank == 1:
            dist.all_reduce(loss.detach(), group=metrics)
            dist.all_reduce(model.weight.grad)
        else:
            dist.all_reduce(model.weight.grad)
            dist.all_reduce(loss.detach(), group=metrics)
        opt.step()
    dist.destroy_process_group()
    print(f"rank {rank} done", flush=True)


def main():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(train, args=(2, port), nprocs=2)


if __name__ == "__main__":
    main()
