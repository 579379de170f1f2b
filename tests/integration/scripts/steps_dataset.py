"""A dataset gone through directly, one sample after the other."""

import torch
from torch import nn
from torch.utils.data import Dataset

torch.manual_seed(0)


class Squares(Dataset):
    def __init__(self, size):
        self.x = torch.linspace(-1, 1, size).unsqueeze(1)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        x = self.x[index]
        return x, x * x


dataset = Squares(50)
model = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
updates = 0
for _epoch in range(3):
    for x, y in dataset:
        loss = (model(x) - y).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        updates += 1
print("updates", updates)
