import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset, TensorDataset


ROWS = 121


def train(rank, world, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    torch.manual_seed(0)
    x = torch.randn(ROWS, 6)
    rows = TensorDataset(x, x.sum(1, keepdim=True))
    loader = DataLoader(Subset(rows, range(rank, len(rows), world)), batch_size=1, shuffle=True)
    model = DistributedDataParallel(nn.Linear(6, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(6):
        for a, b in loader:
            opt.zero_grad()
            nn.functional.mse_loss(model(a), b).backward()
            opt.step()
        print(f"rank {rank} epoch {epoch}", flush=True)


def main():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(train, args=(2, port), nprocs=2)


if __name__ == "__main__":
    main()
