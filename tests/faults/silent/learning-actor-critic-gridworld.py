"""Advantage actor-critic on a corridor: policy and value heads share a trunk, episodes get shorter."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

LENGTH, ENVS, HORIZON = 10, 16, 15


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(LENGTH, 32), nn.Tanh())
        self.policy = nn.Linear(32, 2)
        self.value = nn.Linear(32, 1)

    def forward(self, pos):
        h = self.trunk(F.one_hot(pos, LENGTH).float())
        return Categorical(logits=self.policy(h)), self.value(h).squeeze(-1)


model = ActorCritic()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
pos = torch.randint(0, LENGTH // 2, (ENVS,))
goals = []

for update in range(250):
    log_probs, values, rewards, dones, entropy = [], [], [], [], 0.0
    for _ in range(HORIZON):
        dist, value = model(pos)
        action = dist.sample()
        pos = (pos + 2 * action - 1).clamp(0, LENGTH - 1)
        done = pos == LENGTH - 1
        log_probs.append(dist.log_prob(action))
        values.append(value)
        rewards.append(done.float() - 0.02)
        dones.append(done.float())
        entropy = entropy + dist.entropy().mean()
        pos = torch.where(done, torch.zeros_like(pos), pos)
    with torch.no_grad():
        ret = model(pos)[1]
    returns = []
    for r, d in zip(reversed(rewards), reversed(dones)):
        ret = r + 0.95 * (1 - d) * ret
        returns.insert(0, ret)
    returns, values = torch.stack(returns), torch.stack(values)
    advantage = (returns - values).detach()
    loss = -(torch.stack(log_probs) * advantage).mean() + 0.5 * F.mse_loss(values, returns)
    loss = loss - 0.005 * entropy / HORIZON
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    goals.append(torch.stack(rewards).mean().item())
    if (update + 1) % 25 == 0:
        print(f"update {update + 1} reward per step {sum(goals[-25:]) / 25:.4f} loss {loss.item():.4f}")
