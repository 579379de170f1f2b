"""An LSTM forecasting the next value of noisy sums of sines."""

import argparse
import math

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)


def make_series(n, length=50):
    t = torch.arange(length + 1).float()
    freq = 0.05 + 0.1 * torch.rand(n, 2, 1)
    phase = 2 * math.pi * torch.rand(n, 2, 1)
    clean = torch.sin(2 * math.pi * freq * t + phase).sum(1)
    return (clean + 0.05 * torch.randn_like(clean)).unsqueeze(-1)


class Forecaster(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        h, _ = self.lstm(x)
        return self.out(h)


series = make_series(1024)
model = Forecaster()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
mse = nn.MSELoss()

for epoch in range(12):
    total = 0.0
    batches = torch.randperm(len(series)).split(32)
    for idx in batches:
        batch = series[idx]
        loss = mse(model(batch[:, :-1]), batch[:, 1:])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    print(f"epoch {epoch}: mse {total / len(batches):.5f}")
