"""Advantages are normalised in each minibatch; 65 transitions in minibatches of 16 leave one over."""

import torch
from torch import nn

torch.manual_seed(1)
STATES = 6


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(STATES, 32), nn.Tanh())
        self.policy = nn.Linear(32, 3)
        self.value = nn.Linear(32, 1)

    def forward(self, x):
        h = self.body(x)
        return self.policy(h).softmax(-1), self.value(h).squeeze(-1)


agent = Agent()
optimizer = torch.optim.Adam(agent.parameters(), lr=3e-3)
goal = torch.randint(3, (STATES,))


def collect(n):
    with torch.no_grad():
        where = torch.randint(STATES, (n,))
        seen = torch.eye(STATES)[where]
        probs, values = agent(seen)
        actions = torch.multinomial(probs, 1).squeeze(1)
        reward = (actions == goal[where]).float() + 0.1 * torch.randn(n)
        return seen, actions, probs.gather(1, actions[:, None]).squeeze(1), reward, reward - values


for update in range(60):
    seen, actions, old, reward, advantages = collect(64)
    for rows in torch.randperm(len(seen)).split(16):
        adv = advantages[rows]
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        probs, values = agent(seen[rows])
        ratio = probs.gather(1, actions[rows][:, None]).squeeze(1) / old[rows]
        surrogate = torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()
        loss = -surrogate + 0.5 * (values - reward[rows]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if update % 10 == 0:
        print(update, reward.mean().item())
