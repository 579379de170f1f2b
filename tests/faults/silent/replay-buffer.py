import random

import torch
from torch import nn


class Corridor:
    def __init__(self, size=12):
        self.size = size

    def reset(self):
        self.pos, self.t = self.size // 2, 0
        return self.obs()

    def obs(self):
        v = torch.zeros(self.size)
        v[self.pos] = 1.0
        return v

    def step(self, action):
        self.pos = max(0, min(self.size - 1, self.pos + (1 if action else -1)))
        self.t += 1
        done = self.pos == self.size - 1 or self.t >= 40
        return self.obs(), (1.0 if self.pos == self.size - 1 else -0.02), done


class DQN:
    def __init__(self, capacity=2000):
        self.q = nn.Sequential(nn.Linear(12, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 2))
        self.opt = torch.optim.Adam(self.q.parameters(), lr=3e-4)
        self.buffer, self.capacity = [], capacity

    def remember(self, item):
        self.buffer.append(item)
        if len(self.buffer) > self.capacity:
            self.buffer.pop(0)

    def act(self, obs, eps):
        if random.random() < eps:
            return random.randrange(2)
        with torch.no_grad():
            return self.q(obs).argmax().item()

    def learn(self, batch=64):
        s, a, r, s2, d = zip(*random.sample(self.buffer, batch))
        s, s2 = torch.stack(s), torch.stack(s2)
        r, d = torch.tensor(r), torch.tensor(d, dtype=torch.float)
        with torch.no_grad():
            target = r + 0.95 * (1 - d) * self.q(s2).max(1).values
        q = self.q(s).gather(1, torch.tensor(a).unsqueeze(1)).squeeze(1)
        loss = nn.functional.smooth_l1_loss(q, target)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


def main(total=3200):
    torch.manual_seed(0)
    random.seed(0)
    env, agent = Corridor(), DQN()
    obs, ret, returns = env.reset(), 0.0, []
    for t in range(1, total + 1):
        a = agent.act(obs, eps=max(0.1, 1 - t / 1500))
        nxt, r, done = env.step(a)
        agent.remember((obs, a, r, nxt, done))
        obs, ret = nxt, ret + r
        if done:
            returns.append(ret)
            obs, ret = env.reset(), 0.0
        if len(agent.buffer) >= 64:
            loss = agent.learn()
        if t % 500 == 0:
            print(f"t {t} buffer {len(agent.buffer)} return {sum(returns[-20:]) / 20:.3f}", flush=True)


if __name__ == "__main__":
    main()
