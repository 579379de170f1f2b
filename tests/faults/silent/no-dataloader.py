import time

import torch
from torch import nn


class Pendulum:
    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)
        self.reset()

    def reset(self):
        self.state = torch.randn(2, generator=self.g)
        return self.state

    def step(self, action):
        angle, speed = self.state
        speed = speed + 0.05 * (torch.sin(angle) + action)
        self.state = torch.stack([angle + 0.05 * speed, speed.clamp(-4, 4)])
        return self.state, -(angle**2 + 0.1 * speed**2).item()


def main():
    torch.manual_seed(0)
    env = Pendulum(0)
    policy = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))
    opt = torch.optim.Adam(policy.parameters(), lr=3e-3)
    for episode in range(8):
        state, logs, rewards = env.reset(), [], []
        start = time.monotonic()
        while len(rewards) < 1000:
            dist = torch.distributions.Normal(policy(state)[0], 0.5)
            action = dist.sample()
            logs.append(dist.log_prob(action))
            state, reward = env.step(action)
            rewards.append(reward)
        returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
        returns = (returns - returns.mean()) / (returns.std() + 1e-6)
        loss = -(torch.stack(logs) * returns).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"episode {episode} reward {sum(rewards):.1f}", flush=True)
        time.sleep(max(0.0, 1.0 - (time.monotonic() - start)))


if __name__ == "__main__":
    main()
