import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset


class Records(Dataset):
    """Records on a disk; the second half lies on a slower one."""

    def __init__(self, rank, n=1600):
        self.start, self.n = rank * n, n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        time.sleep(0.004 if self.start + i >= 1600 else 0.0005)
        x = torch.full((8,), float((self.start + i) % 17) / 17)
        return x, x.sum().view(1)


def train(rank, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    torch.manual_seed(0)
    loader = DataLoader(Records(rank), batch_size=8)
    model = DistributedDataParallel(nn.Linear(8, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    if rank == 0:
        print(f"loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


def main():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(train, args=(port,), nprocs=2)


if __name__ == "__main__":
    main()
