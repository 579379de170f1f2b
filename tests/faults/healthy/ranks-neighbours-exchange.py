import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn


def train(rank, world, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    torch.manual_seed(rank)
    border, other = torch.randn(8), torch.empty(8)
    field = nn.Linear(8, 8)
    for step in range(30):
        with torch.no_grad():
            border = field(border).tanh()
        if rank == 0:
            dist.send(border, 1 - rank)
            dist.recv(other, 1 - rank)
        else:
            dist.recv(other, 1 - rank)
            dist.send(border, 1 - rank)
        border = (border + other) / 2
    dist.destroy_process_group()
    print(f"rank {rank} done", flush=True)


def main():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(train, args=(2, port), nprocs=2)


if __name__ == "__main__":
    main()
