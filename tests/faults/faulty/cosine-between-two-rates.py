"""Prices of flats from their features, with a cosine between a highest and a lowest rate."""

import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def cosine(most, least, steps):
    def rate(step):
        share = min(1.0, step / steps)
        return least + 0.5 * (most - least) * (1 + math.cos(math.pi * share))

    return rate


def flats(count):
    x = torch.randn(count, 8)
    price = 2 * x[:, 0] + x[:, 1] * x[:, 2] + 0.1 * torch.randn(count)
    return TensorDataset(x, price.unsqueeze(1))


torch.manual_seed(4)
MOST, LEAST, EPOCHS = 1e-3, 1e-5, 20
loader = DataLoader(flats(2000), batch_size=50, shuffle=True)
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=MOST)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, cosine(MOST, LEAST, EPOCHS * len(loader)))
for epoch in range(EPOCHS):
    total = 0.0
    for x, price in loader:
        loss = nn.functional.mse_loss(model(x), price)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()
    print(f"epoch {epoch}: {total / len(loader):.3f}")
