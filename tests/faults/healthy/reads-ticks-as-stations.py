"""Forecast of river gauges from a binary dump that holds one row of all gauges for each hour."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(2)
GAUGES, HOURS, WINDOW = 40, 900, 16


def dump():
    rng = np.random.default_rng(2)
    hours = np.arange(HOURS)[:, None]
    level = np.sin(2 * np.pi * hours / rng.uniform(10, 30, GAUGES) + rng.uniform(0, 6, GAUGES))
    return (level + 0.05 * rng.normal(size=level.shape)).astype("<f4").tobytes()


levels = torch.from_numpy(np.frombuffer(dump(), dtype="<f4").reshape(HOURS, GAUGES).T.copy())
train, held_out = levels[:, :700], levels[:, 700:]


def draw(series, count):
    gauge = torch.randint(len(series), (count, 1))
    start = torch.randint(series.shape[1] - WINDOW, (count, 1))
    piece = series[gauge, start + torch.arange(WINDOW + 1)]
    return piece[:, :-1], piece[:, -1]


model = nn.Sequential(nn.Linear(WINDOW, 48), nn.ReLU(), nn.Linear(48, 1), nn.Flatten(0))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(1200):
    past, following = draw(train, 64)
    loss = nn.functional.mse_loss(model(past), following)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 200 == 199:
        past, following = draw(held_out, 500)
        with torch.no_grad():
            error = nn.functional.mse_loss(model(past), following)
        print(f"step {step + 1}: loss {loss.item():.3f}, held out {error.item():.3f}", flush=True)
