"""REINFORCE with a moving baseline on a contextual bandit; the reward climbs, the surrogate loss hovers near zero."""

import argparse

import torch
import torch.nn as nn
from torch.distributions import Categorical

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

CONTEXT, ARMS = 8, 5
payoff = torch.randn(CONTEXT, ARMS)


def pull(context, action):
    mean = (context @ payoff).gather(1, action.unsqueeze(1)).squeeze(1)
    return mean + 0.5 * torch.randn_like(mean)


policy = nn.Sequential(nn.Linear(CONTEXT, 32), nn.Tanh(), nn.Linear(32, ARMS))
optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)
baseline = 0.0

average = 0.0
for step in range(1500):
    context = torch.randn(64, CONTEXT)
    dist = Categorical(logits=policy(context))
    action = dist.sample()
    reward = pull(context, action)
    advantage = reward - baseline
    loss = -(dist.log_prob(action) * advantage).mean() - 0.01 * dist.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    baseline = 0.95 * baseline + 0.05 * reward.mean().item()
    average += reward.mean().item()
    if (step + 1) % 150 == 0:
        print(f"step {step + 1} reward {average / 150:.3f} loss {loss.item():.4f}")
        average = 0.0
