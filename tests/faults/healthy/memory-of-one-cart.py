"""Learns what each push is worth for a cart that is to stop at 0, from transitions kept in a list."""

import random

import numpy as np
import torch
from torch import nn

PUSHES = (-1.0, 0.0, 1.0)


class Cart:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.state = np.zeros(4, dtype=np.float32)  # place, speed, and both a moment ago

    def start(self):
        self.state[:2] = self.rng.uniform(-1, 1, 2)
        return self.seen()

    def seen(self):
        return self.state[:2].copy()

    def push(self, force):
        self.state[2:] = self.state[:2]
        self.state[1] += 0.2 * force - 0.02 * self.state[1]
        self.state[0] += 0.2 * self.state[1]
        return self.seen(), -float(np.abs(self.state[:2]).sum())


def learn(kept, model, optimizer):
    some = random.sample(kept, 64)
    before = torch.tensor(np.array([each["before"] for each in some]))
    after = torch.tensor(np.array([each["after"] for each in some]))
    force = torch.tensor([each["force"] for each in some])
    with torch.no_grad():
        worth = torch.tensor([each["reward"] for each in some]) + 0.8 * model(after).max(1).values
    loss = nn.functional.smooth_l1_loss(model(before).gather(1, force[:, None]).squeeze(1), worth)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main(episodes=120):
    random.seed(0)
    torch.manual_seed(0)
    cart, kept = Cart(1), []
    model = nn.Sequential(nn.Linear(2, 48), nn.Tanh(), nn.Linear(48, len(PUSHES)))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for episode in range(episodes):
        state, gained = cart.start(), 0.0
        for _ in range(25):
            with torch.no_grad():
                best = int(model(torch.from_numpy(state)).argmax())
            force = random.randrange(3) if random.random() < 0.2 else best
            following, reward = cart.push(PUSHES[force])
            kept.append({"before": state, "force": force, "reward": reward, "after": following})
            state, gained = following, gained + reward
            if len(kept) > 200:
                loss = learn(kept, model, optimizer)
        if episode % 20 == 19:
            print(f"episode {episode} gained {gained:.2f} loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    main()
