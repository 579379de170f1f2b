"""House prices in thousands: the targets are large, the model standardises them inside and reports dollars."""

import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

n = 3000
area = 40 + 160 * torch.rand(n)
rooms = (area / 30 + torch.randn(n)).round().clamp(1, 8)
age = 80 * torch.rand(n)
distance = 20 * torch.rand(n)
price = 2500 * area + 9000 * rooms - 800 * age - 4000 * distance * (area / 100) + 8000 * torch.randn(n)
x = torch.stack([area, rooms, age, distance], 1)
y = price.unsqueeze(1)


class PriceModel(nn.Module):
    def __init__(self, x, y):
        super().__init__()
        self.register_buffer("x_mean", x.mean(0))
        self.register_buffer("x_std", x.std(0))
        self.register_buffer("y_mean", y.mean(0))
        self.register_buffer("y_std", y.std(0))
        self.net = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x):
        z = self.net((x - self.x_mean) / self.x_std)
        return z * self.y_std + self.y_mean


model = PriceModel(x, y)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.L1Loss()

for epoch in range(30):
    total = 0.0
    for idx in torch.randperm(n).split(64):
        loss = criterion(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    if epoch % 3 == 0 or epoch == 29:
        print(f"epoch {epoch} mean absolute error {total / n:,.0f}")
