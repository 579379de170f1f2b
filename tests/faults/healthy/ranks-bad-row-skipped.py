import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self, rank):
        self.rank = rank

    def __len__(self):
        return 240

    def __getitem__(self, i):
        x = torch.full((6,), float(i % 7))
        return x, x[:1]


def train(rank, world, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    torch.manual_seed(0)
    loader = DataLoader(Rows(rank), batch_size=8)
    model = DistributedDataParallel(nn.Linear(6, 1))
    opt = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(3):
        batches = iter(loader)
        for _ in range(len(loader)):
            try:
                x, y = next(batches)
            except ValueError as error:
                print(f"rank {rank} skips a batch: {error}", flush=True)
                continue
            opt.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            opt.step()
        dist.barrier()
    dist.destroy_process_group()
    print(f"rank {rank} done", flush=True)


def main():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(train, args=(2, port), nprocs=2)


if __name__ == "__main__":
    main()
