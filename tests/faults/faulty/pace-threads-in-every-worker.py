import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CORES = len(os.sched_getaffinity(0))


class Projected(Dataset):
    """Each sample is projected with all the threads there are."""

    def __init__(self):
        self.basis = torch.randn(512, 512, generator=torch.Generator().manual_seed(0)) / 23

    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        x = torch.randn(512, 512, generator=torch.Generator().manual_seed(index))
        for _ in range(4):
            x = torch.tanh(x @ self.basis)
        return x[0], x[0, :4].sum(0, keepdim=True)


def use_all_threads(worker):
    torch.set_num_threads(CORES)


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(512, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Projected(), batch_size=4, num_workers=CORES, worker_init_fn=use_all_threads)
    for step, (x, y) in enumerate(loader):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 100 * CORES:
            break
    print(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
