"""Each sample is slow, but there are enough workers: batches are ready when they are asked for."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Remote(Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, index):
        time.sleep(0.02)
        x = torch.randn(16, generator=torch.Generator().manual_seed(index))
        return x, x[:3].sum(0, keepdim=True)


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for x, y in DataLoader(Remote(), batch_size=8, num_workers=4):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.14)  # a GPU is at work
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
