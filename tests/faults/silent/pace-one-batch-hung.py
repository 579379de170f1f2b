"""A pass in which one sample hung for seven seconds, and no other."""

import time
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self):
        g = torch.Generator().manual_seed(0)
        self.x = torch.randn(1200, 8, generator=g)
        self.y = self.x @ torch.randn(8, 1, generator=g)

    def __len__(self):
        return 1200

    def __getitem__(self, i):
        if i == 400:
            time.sleep(7)
        return self.x[i], self.y[i]


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(1):
        for x, y in DataLoader(Rows(), batch_size=8, num_workers=1):
            for _ in range(40):
                loss = nn.functional.mse_loss(model(x), y)
                opt.zero_grad()
                loss.backward()
                opt.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
