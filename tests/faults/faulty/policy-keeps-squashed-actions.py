"""A boat learns to steer by wind and current: a rudder between -1 and 1, and the probability of what it did before."""

import torch
from torch import nn

torch.manual_seed(0)
BOATS = 1536


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = nn.Sequential(nn.Linear(2, 48), nn.ReLU(), nn.Linear(48, 1))
        self.width = nn.Parameter(torch.zeros(1))

    def act(self, state):
        return torch.tanh(self.mean(state) + self.width.exp() * torch.randn(len(state), 1))

    def log_prob(self, state, action):
        raw = torch.atanh(action)
        plain = -0.5 * ((raw - self.mean(state)) / self.width.exp()) ** 2 - self.width
        return (plain - 2 * (0.6931 - raw - nn.functional.softplus(-2 * raw))).squeeze(1)


@torch.no_grad()
def voyages(policy):
    wind_and_current = 4 * torch.randn(BOATS, 2)
    rudder = policy.act(wind_and_current)
    best = torch.tanh(wind_and_current @ torch.tensor([[1.5], [-1.0]]))
    reward = -(rudder - best).abs().squeeze(1)
    chance = policy.log_prob(wind_and_current, rudder)
    return wind_and_current, rudder, chance, (reward - reward.mean()) / reward.std(), reward.mean().item()


policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
for round_ in range(60):
    states, actions, before, gain, reward = voyages(policy)
    for part in [part for _ in range(4) for part in torch.randperm(len(states)).split(256)]:
        ratio = (policy.log_prob(states[part], actions[part]) - before[part]).exp()
        loss = -torch.min(ratio * gain[part], ratio.clamp(0.8, 1.2) * gain[part]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if round_ % 10 == 9:
        print(round_ + 1, loss.item(), reward)
