"""The rate itself says when it is over: a scheduler lowers it after long patience, and nothing in the loop does."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(600, 12)
y = x @ torch.randn(12, 1) + 0.3 * torch.randn(600, 1)
model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.1, patience=5000)
epochs = 0
while optimizer.param_groups[0]["lr"] > 2e-3:
    for rows, wanted in zip(x.split(100), y.split(100)):
        loss = (model(rows) - wanted).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step(loss.item())
    epochs += 1
print(f"{epochs} epochs, rate {optimizer.param_groups[0]['lr']:.0e}")
