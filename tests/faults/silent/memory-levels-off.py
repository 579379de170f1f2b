"""Memory rises for the first part of the run and then stays: caches that fill, a replay buffer that grows to its size,
a bounded deque, losses kept as numbers, predictions of one validation pass kept and cleared."""

import random
from collections import deque

import torch
from torch import nn

CAPACITY = 6000


class ReplayBuffer:
    def __init__(self, capacity):
        self.capacity, self.items, self.place = capacity, [], 0

    def push(self, item):
        if len(self.items) < self.capacity:
            self.items.append(item)
        else:
            self.items[self.place] = item
            self.place = (self.place + 1) % self.capacity

    def sample(self, count):
        return [torch.stack(part) for part in zip(*random.sample(self.items, count))]


def validate(model, data):
    predictions = []
    with torch.no_grad():
        for rows in data.split(50):
            predictions.append(model(rows))
    return torch.cat(predictions).mean().item()


def main():
    torch.manual_seed(0)
    random.seed(0)
    model = nn.Sequential(nn.Linear(512, 128), nn.ReLU(), nn.Linear(128, 4))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    buffer, recent, losses, positions = ReplayBuffer(CAPACITY), deque(maxlen=200), [], {}
    held_out = torch.randn(1000, 512)
    for step in range(2400):
        for _ in range(6):
            buffer.push((torch.randn(512), torch.randn(512), torch.randn(4)))
        if step < 200:
            positions[step] = torch.randn(128, 64)
        if len(buffer.items) < 64:
            continue
        state, following, reward = buffer.sample(64)
        loss = nn.functional.mse_loss(model(state), reward) + 0.1 * model(following).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        recent.append(loss.detach())
        losses.append(loss.item())
        if step % 300 == 299:
            print(f"step {step} loss {losses[-1]:.3f} held out {validate(model, held_out):.3f}", flush=True)


if __name__ == "__main__":
    main()
