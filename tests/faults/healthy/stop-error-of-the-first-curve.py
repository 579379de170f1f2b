"""Fits a damped oscillation with a small network, until the largest error on a grid is below a tolerance."""

import torch
from torch import nn

TOLERANCE = 0.08


def oscillation(t):
    return torch.exp(-0.4 * t) * torch.cos(3.0 * t)


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    grid = torch.linspace(0, 5, 200)[:, None]
    exact = oscillation(grid)
    with torch.no_grad():
        curve = model(grid)
    print(f"error at the start {(curve - exact).abs().max().item():.3f}")

    g = torch.Generator().manual_seed(1)
    step = 0
    while True:
        t = 5 * torch.rand(64, 1, generator=g)
        loss = (model(t) - oscillation(t)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        error = (model(grid) - exact).abs().max().item()
        if error < TOLERANCE:
            break
    print(f"error {error:.3f} after {step} steps")


if __name__ == "__main__":
    main()
