"""The first sample reads an index for six seconds; after that nothing is waited for."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Indexed(Dataset):
    index = None

    def __len__(self):
        return 1200

    def __getitem__(self, number):
        if self.index is None:
            time.sleep(6)
            self.index = torch.randn(1200, 16, generator=torch.Generator().manual_seed(0))
        x = self.index[number]
        return x, x[:3].sum(0, keepdim=True)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
loader = DataLoader(Indexed(), batch_size=32, shuffle=True)
for epoch in range(4):
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.01)
    print(f"epoch {epoch}: {loss.item():.4f}", flush=True)
