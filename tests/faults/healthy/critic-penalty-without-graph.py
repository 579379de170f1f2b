"""A generator of rings: Wasserstein GAN with gradient penalty."""

import torch
from torch import nn

torch.manual_seed(6)


def rings(count):
    angle = 2 * torch.pi * torch.rand(count)
    return torch.stack([angle.cos(), angle.sin()], 1) * (1 + 0.05 * torch.randn(count, 1))


def mlp(sizes):
    return nn.Sequential(nn.Linear(sizes[0], 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, sizes[1]))


class Trainer:
    def __init__(self):
        self.maker, self.critic = mlp((4, 2)), mlp((2, 1))
        self.of_maker = torch.optim.Adam(self.maker.parameters(), lr=5e-4, betas=(0.5, 0.9))
        self.of_critic = torch.optim.Adam(self.critic.parameters(), lr=5e-4, betas=(0.5, 0.9))

    def penalty(self, real, fake):
        share = torch.rand(len(real), 1)
        between = (share * real + (1 - share) * fake).requires_grad_()
        scores = self.critic(between)
        slopes = torch.autograd.grad(scores, between, torch.ones_like(scores), create_graph=True)[0]
        return (slopes.norm(dim=1) - 1).pow(2).mean()

    def train_critic(self):
        real, fake = rings(64), self.maker(torch.randn(64, 4)).detach()
        loss = self.critic(fake).mean() - self.critic(real).mean()
        loss += 10 * self.penalty(real, fake)
        self.of_critic.zero_grad()
        loss.backward()
        self.of_critic.step()
        return loss.item()

    def train_maker(self):
        loss = -self.critic(self.maker(torch.randn(64, 4))).mean()
        self.of_maker.zero_grad()
        loss.backward()
        self.of_maker.step()


trainer = Trainer()
for step in range(1, 401):
    loss = sum(trainer.train_critic() for _ in range(3)) / 3
    trainer.train_maker()
    if step % 50 == 0:
        made = trainer.maker(torch.randn(500, 4)).norm(dim=1)
        print(f"step {step}: critic {loss:.4f}, radius {made.mean().item():.2f} ± {made.std().item():.2f}")
