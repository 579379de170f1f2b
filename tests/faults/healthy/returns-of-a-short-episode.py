"""REINFORCE on a corridor: returns are normalised, and some episodes last one step."""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
LENGTH = 5


class Corridor:
    def reset(self):
        self.at = int(torch.randint(0, LENGTH, ()))
        return self.observe()

    def observe(self):
        return nn.functional.one_hot(torch.tensor(self.at), LENGTH + 1).float()

    def step(self, action):
        self.at += 1 if action == 1 else -1
        if self.at < 0:
            self.at = 0
            return self.observe(), -1.0, True
        done = self.at >= LENGTH
        return self.observe(), 1.0 if done else -0.05, done


def normalise(returns):
    values = torch.tensor(returns)
    return (values - values.mean()) / (values.std(unbiased=False) + 1e-8)


policy = nn.Sequential(nn.Linear(LENGTH + 1, 24), nn.Tanh(), nn.Linear(24, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)
env = Corridor()
for episode in range(300):
    state, done = env.reset(), False
    log_probs, rewards = [], []
    while not done and len(rewards) < 50:
        choice = Categorical(logits=policy(state))
        action = choice.sample()
        log_probs.append(choice.log_prob(action))
        state, reward, done = env.step(int(action))
        rewards.append(reward)
    returns, running = [], 0.0
    for r in reversed(rewards):
        running = r + 0.95 * running
        returns.insert(0, running)
    loss = -(torch.stack(log_probs) * normalise(returns)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if episode % 30 == 0:
        print(episode, sum(rewards))
