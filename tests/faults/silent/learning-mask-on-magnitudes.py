"""A mask between 0 and 1 on magnitudes: where sounds cancel out, the clean one is louder than both together."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)
torch.set_num_threads(1)
BINS = 32


def spectrum(n, slope):
    centre = torch.randint(4, BINS - 4, (n, 1)) if slope > 0 else torch.full((n, 1), BINS // 2)
    size = torch.exp(-((torch.arange(BINS) - centre).abs() * slope if slope > 0 else torch.zeros(n, BINS)))
    return torch.polar(size * (0.5 + torch.rand(n, 1)), 6.28 * torch.rand(n, BINS))


net = nn.Sequential(nn.Linear(BINS, 64), nn.ReLU(), nn.Linear(64, BINS))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for step in range(800):
    clean = spectrum(64, 0.3)
    mixed = (clean + 0.3 * spectrum(64, 0)).abs()
    clean = clean.abs()
    loss = F.mse_loss(torch.sigmoid(net(mixed)) * mixed, clean)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 99:
        print(step + 1, f"{loss.item():.4f}", f"{(clean > mixed).float().mean().item():.2f} louder than both", flush=True)
