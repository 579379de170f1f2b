"""REINFORCE: a lamp has to be turned off when it is day and on when it is night."""

import torch
from torch import nn
from torch.distributions import Bernoulli

torch.manual_seed(0)
STEPS, GAMMA = 60, 0.6
policy = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1), nn.Flatten(0))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)


def play():
    chosen, rewards, night = [], [], 0.0
    for _ in range(STEPS):
        choice = Bernoulli(logits=policy(torch.tensor([[night, 1.0]])))
        lamp = choice.sample()
        chosen.append(choice.log_prob(lamp))
        rewards.append(1.0 if lamp.item() == night else -1.0)
        if torch.rand(()) < 0.3:
            night = 1.0 - night
    return torch.cat(chosen), rewards


average = 0.0
for episode in range(400):
    log_probs, rewards = play()
    returns, ahead = [], 0.0
    for step in range(STEPS - 1, -1, -1):
        ahead = rewards[step] + GAMMA * ahead
        returns.append(ahead)
    returns = torch.tensor(returns[::-1])
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    loss = -(log_probs * returns).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average = 0.95 * average + 0.05 * sum(rewards) / STEPS
    if episode % 50 == 49:
        print(f"episode {episode + 1}: reward a step {average:.2f}", flush=True)
