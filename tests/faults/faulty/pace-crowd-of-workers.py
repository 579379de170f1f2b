import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

WORKERS = 4 * len(os.sched_getaffinity(0))


class Rendered(Dataset):
    """Every sample is computed: nothing but work for a processor."""

    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        total = 0
        for number in range(40_000):
            total += number * index % 7
        return torch.full((64,), total % 1000 / 1000), torch.tensor([index % 10 / 10])


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 512), nn.Tanh(), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Rendered(), batch_size=8, num_workers=WORKERS)
    for step, (x, y) in enumerate(loader):
        for _ in range(8):
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if step == 60 * WORKERS:
            break
    print(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
