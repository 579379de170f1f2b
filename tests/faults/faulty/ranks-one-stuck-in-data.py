import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Graphs(Dataset):
    """Random trees given as parent pointers; the target is the depth of the last node."""

    def __init__(self, n=200, nodes=12):
        g = torch.Generator().manual_seed(0)
        self.parents = [[0] + [int(torch.randint(0, k, (1,), generator=g)) for k in range(1, nodes)] for _ in range(n)]
        self.parents[51][11] = 11

    def __len__(self):
        return len(self.parents)

    def depth(self, parents, node):
        depth = 0
        while node != 0:
            node = parents[node]
            depth += 1
        return depth

    def __getitem__(self, i):
        parents = self.parents[i]
        return torch.tensor(parents, dtype=torch.float32) / 12, torch.tensor([float(self.depth(parents, 11))])


def train(rank, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    torch.manual_seed(0)
    data = Graphs()
    loader = DataLoader(data, batch_size=5, sampler=DistributedSampler(data, shuffle=False))
    model = DistributedDataParallel(nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 1)))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(2):
        for step, (x, y) in enumerate(loader):
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if rank == 0 and step % 5 == 0:
                print(f"epoch {epoch} step {step} mse {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


def main():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(train, args=(port,), nprocs=2)


if __name__ == "__main__":
    main()
