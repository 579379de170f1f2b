"""WGAN with gradient penalty: autograd.grad(create_graph=True) inside the critic's loss, five critic steps per G."""

import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

mix = torch.tensor([[1.0, 0.6], [0.0, 0.5]])
shift = torch.tensor([2.0, -1.0])


def real_batch(n):
    return torch.randn(n, 2) @ mix + shift


def gradient_penalty(critic, real, fake):
    eps = torch.rand(len(real), 1)
    mid = (eps * real + (1 - eps) * fake).requires_grad_(True)
    score = critic(mid)
    (grad,) = torch.autograd.grad(score.sum(), mid, create_graph=True)
    return ((grad.norm(dim=1) - 1) ** 2).mean()


generator = nn.Sequential(nn.Linear(4, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 2))
critic = nn.Sequential(nn.Linear(2, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, 1))
opt_g = torch.optim.Adam(generator.parameters(), lr=5e-4, betas=(0.0, 0.9))
opt_c = torch.optim.Adam(critic.parameters(), lr=4e-3, betas=(0.0, 0.9))

for step in range(280):
    for _ in range(5):
        real = real_batch(64)
        with torch.no_grad():
            fake = generator(torch.randn(64, 4))
        wasserstein = critic(real).mean() - critic(fake).mean()
        loss_c = -wasserstein + 1.0 * gradient_penalty(critic, real, fake)
        opt_c.zero_grad()
        loss_c.backward()
        opt_c.step()

    loss_g = -critic(generator(torch.randn(64, 4))).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()

    if step % 35 == 0 or step == 279:
        with torch.no_grad():
            miss = (generator(torch.randn(1000, 4)).mean(0) - shift).norm()
        print(f"step {step} critic {loss_c.item():.3f} distance {wasserstein.item():.3f} mean off by {miss:.3f}")
