"""A GAN on a ring, without optimizers: each net clears its gradients before its own backward pass only."""

import torch
from torch import nn

torch.manual_seed(6)
generator = nn.Sequential(nn.Linear(4, 48), nn.ReLU(), nn.Linear(48, 2))
critic = nn.Sequential(nn.Linear(2, 48), nn.LeakyReLU(0.2), nn.Linear(48, 1))
truth, lie = torch.ones(64, 1), torch.zeros(64, 1)
judge = nn.functional.binary_cross_entropy_with_logits


def descend(model, rate=0.05):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= rate * parameter.grad


for step in range(1500):
    angle = 6.2832 * torch.rand(64, 1)
    real = torch.cat([angle.cos(), angle.sin()], 1)
    made = generator(torch.randn(64, 4))
    critic.zero_grad()
    doubt = judge(critic(real), truth) + judge(critic(made.detach()), lie)
    doubt.backward()
    descend(critic)
    generator.zero_grad()
    caught = judge(critic(made), truth)
    caught.backward()
    descend(generator)
    if step % 150 == 0:
        print(f"step {step}: critic {doubt.item():.3f}, generator {caught.item():.3f}")
