"""Workers count their samples under a lock that is free again at once."""

import multiprocessing
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Counted(Dataset):
    def __init__(self):
        self.count = multiprocessing.Value("l", 0)

    def __len__(self):
        return 600

    def __getitem__(self, index):
        with self.count.get_lock():
            self.count.value += 1
        time.sleep(0.005)
        x = torch.randn(16, generator=torch.Generator().manual_seed(index))
        return x, x[:3].sum(0, keepdim=True)


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    data = Counted()
    for x, y in DataLoader(data, batch_size=10, num_workers=3):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.1)
    print(f"loss {loss.item():.4f}, {data.count.value} samples")


if __name__ == "__main__":
    main()
