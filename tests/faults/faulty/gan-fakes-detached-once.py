"""A GAN on two-dimensional points: the generator should follow a ring of clusters."""

import math

import torch
from torch import nn


def ring(count):
    angle = 2 * math.pi * torch.randint(0, 8, (count,)) / 8
    return torch.stack([angle.cos(), angle.sin()], 1) * 2 + 0.05 * torch.randn(count, 2)


def net(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 48), nn.LeakyReLU(0.2), nn.Linear(48, 48), nn.LeakyReLU(0.2),
                         nn.Linear(48, outputs))  # fmt: skip


def main():
    torch.manual_seed(1)
    generator, critic = net(8, 2), net(2, 1)
    g_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.99))
    d_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.99))
    bce = nn.BCEWithLogitsLoss()
    for step in range(400):
        real = ring(64)
        fake = generator(torch.randn(64, 8)).detach()
        d_loss = bce(critic(real), torch.ones(64, 1)) + bce(critic(fake), torch.zeros(64, 1))
        d_optimizer.zero_grad()
        d_loss.backward()
        d_optimizer.step()

        g_loss = bce(critic(fake), torch.ones(64, 1))
        g_optimizer.zero_grad()
        g_loss.backward()
        g_optimizer.step()
        if step % 50 == 0:
            print(f"step {step} critic {d_loss.item():.4f} generator {g_loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
