import os
import socket
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def average(value):
    t = torch.tensor([value])
    dist.all_reduce(t)
    return t.item() / dist.get_world_size()


def train(rank, port, folder):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    torch.manual_seed(0)
    x = torch.randn(2000, 10)
    y = x[:, :3].sum(1, keepdim=True)
    data = TensorDataset(x[rank::2], y[rank::2])
    loader = DataLoader(data, batch_size=25, shuffle=True, generator=torch.Generator().manual_seed(rank))
    model = nn.parallel.DistributedDataParallel(nn.Linear(10, 1))
    opt = torch.optim.SGD(model.parameters(), lr=5e-3)
    for epoch in range(4):
        for xb, yb in loader:
            loss = nn.functional.mse_loss(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
        path = os.path.join(folder, f"epoch{epoch}.pt")
        mean = average(loss.item())
        if rank == 0:
            torch.save({"model": model.module.state_dict(), "loss": mean}, path + ".tmp")
            os.replace(path + ".tmp", path)
            print(f"epoch {epoch} loss {mean:.5f}", flush=True)
        else:
            while not os.path.exists(path):
                time.sleep(0.1)
    dist.destroy_process_group()


def main():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(train, args=(port, tempfile.mkdtemp(prefix="ddp_")), nprocs=2)
    print("done")


if __name__ == "__main__":
    main()
