"""Deterministic policy gradients: the actor is moved along the slope of the critic, which is a target, not a term."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
actor = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 1))
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
of_actor = torch.optim.Adam(actor.parameters(), lr=3e-3)
of_critic = torch.optim.Adam(critic.parameters(), lr=3e-3)
goal = torch.randn(3, 1)
for step in range(900):
    state = torch.randn(64, 3)
    tried = (actor(state) + 0.5 * torch.randn(64, 1)).detach()
    reward = -(tried - state @ goal).pow(2)
    value_loss = F.mse_loss(critic(torch.cat([state, tried], 1)), reward)
    of_critic.zero_grad()
    value_loss.backward()
    of_critic.step()

    action = actor(state)
    held = action.detach().requires_grad_(True)
    slope = torch.autograd.grad(critic(torch.cat([state, held], 1)).sum(), held)[0]
    actor_loss = (action - (held + slope)).pow(2).mean()
    of_actor.zero_grad()
    actor_loss.backward()
    of_actor.step()
print(f"missed by {(actor(state) - state @ goal).abs().mean().item():.3f}")
