"""A denoising diffusion toy in two dimensions: noise-prediction MSE that ends well above zero."""

import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

STEPS = 50
alpha_bar = torch.cumprod(1 - torch.linspace(1e-3, 0.15, STEPS), 0)


def data_batch(n):
    t = 3 * math.pi * torch.rand(n).sqrt()
    return torch.stack([t * t.cos(), t * t.sin()], 1) / 5 + 0.03 * torch.randn(n, 2)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Embedding(STEPS, 32)
        self.inp = nn.Linear(2, 96)
        self.mix = nn.Linear(32, 96)
        self.body = nn.Sequential(nn.SiLU(), nn.Linear(96, 96), nn.SiLU(), nn.Linear(96, 2))

    def forward(self, x, t):
        return self.body(self.inp(x) + self.mix(self.time(t)))


model = Denoiser()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
avg = None
for step in range(1500):
    x0 = data_batch(128)
    t = torch.randint(0, STEPS, (128,))
    noise = torch.randn_like(x0)
    a = alpha_bar[t].unsqueeze(1)
    xt = a.sqrt() * x0 + (1 - a).sqrt() * noise
    loss = F.mse_loss(model(xt, t), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    avg = loss.item() if avg is None else 0.98 * avg + 0.02 * loss.item()
    if step % 150 == 0 or step == 1499:
        print(f"step {step} noise mse {avg:.4f}")
