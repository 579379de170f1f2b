"""A try of a few batches with slow samples: over before there is anything to save."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        time.sleep(0.04)
        x = torch.randn(8, generator=torch.Generator().manual_seed(index))
        return x, x.sum(0, keepdim=True)


torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for x, y in DataLoader(Slow(), batch_size=8):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
