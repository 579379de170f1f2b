"""A GAN on a ring of points: the critic gets its steps, then the generator until it fools the critic often enough."""

import torch
import torch.nn.functional as F
from torch import nn


def ring(n, g):
    angle = 6.2832 * torch.rand(n, generator=g)
    return torch.stack([angle.cos(), angle.sin()], dim=1) + 0.1 * torch.randn(n, 2, generator=g)


class Game:
    def __init__(self, pass_rate=0.4):
        self.generator = nn.Sequential(nn.Linear(4, 48), nn.ReLU(), nn.Linear(48, 2))
        self.critic = nn.Sequential(nn.Linear(2, 48), nn.LeakyReLU(0.2), nn.Linear(48, 1))
        self.make = torch.optim.Adam(self.generator.parameters(), lr=1e-3, betas=(0.5, 0.99))
        self.judge = torch.optim.Adam(self.critic.parameters(), lr=2e-3, betas=(0.5, 0.99))
        self.pass_rate = pass_rate

    def play(self, g):
        for _ in range(20):
            fake = self.generator(torch.randn(128, 4, generator=g)).detach()
            loss = F.softplus(-self.critic(ring(128, g))).mean() + F.softplus(self.critic(fake)).mean()
            self.judge.zero_grad()
            loss.backward()
            self.judge.step()
        passed, updates = 0.0, 0
        while passed < self.pass_rate:
            sample = self.generator(torch.randn(128, 4, generator=g))
            loss = F.softplus(-self.critic(sample)).mean()
            self.make.zero_grad()
            loss.backward()
            self.make.step()
            updates += 1
            with torch.no_grad():
                passed = (self.critic(sample) > 0).float().mean().item()
        return updates


def main():
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(1)
    game = Game()
    updates = sum(game.play(g) for _ in range(60))
    print(f"60 rounds, {updates} updates of the generator")


if __name__ == "__main__":
    main()
