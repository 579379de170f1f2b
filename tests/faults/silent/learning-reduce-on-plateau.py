"""ReduceLROnPlateau driven by the validation loss."""

import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)


def target(x):
    return torch.sin(2 * x[:, :1]) + x[:, 1:2] * x[:, 2:3] - 0.5 * x[:, 3:4].abs()


x = torch.randn(3000, 4)
y = target(x) + 0.1 * torch.randn(3000, 1)
x_val = torch.randn(800, 4)
y_val = target(x_val) + 0.1 * torch.randn(800, 1)

model = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=2)
mse = nn.MSELoss()

for epoch in range(40):
    model.train()
    for idx in torch.randperm(len(x)).split(64):
        loss = mse(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val = mse(model(x_val), y_val).item()
    scheduler.step(val)
    if epoch % 4 == 0 or epoch == 39:
        print(f"epoch {epoch} lr {optimizer.param_groups[0]['lr']:.1e} train {loss.item():.4f} val {val:.4f}")
