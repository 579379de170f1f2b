"""A small GAN on a noisy ring: two optimizers, the adversarial losses settle rather than fall."""

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


def real_batch(n):
    angle = 2 * math.pi * torch.rand(n)
    return torch.stack([angle.cos(), angle.sin()], 1) * 1.5 + 0.1 * torch.randn(n, 2)


generator = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
discriminator = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
opt_g = torch.optim.Adam(generator.parameters(), lr=4e-4, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.999))

for step in range(1200):
    real = real_batch(128)
    fake = generator(torch.randn(128, 8))

    d_real, d_fake = discriminator(real), discriminator(fake.detach())
    loss_d = F.binary_cross_entropy_with_logits(d_real, torch.ones_like(d_real))
    loss_d = loss_d + F.binary_cross_entropy_with_logits(d_fake, torch.zeros_like(d_fake))
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()

    d_fake = discriminator(fake)
    loss_g = F.binary_cross_entropy_with_logits(d_fake, torch.ones_like(d_fake))
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()

    if step % 150 == 0 or step == 1199:
        with torch.no_grad():
            sample = generator(torch.randn(1000, 8))
            off = (sample.norm(dim=1) - 1.5).abs().mean()
        print(f"step {step} D {loss_d.item():.3f} G {loss_g.item():.3f} distance from the ring {off:.3f}")
