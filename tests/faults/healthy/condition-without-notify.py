"""A replay buffer with a condition: the learner waits until the actor has filled it far enough."""

import threading
import time
from collections import deque

import torch
from torch import nn


class Replay:
    def __init__(self, capacity=500):
        self.items = deque(maxlen=capacity)
        self.changed = threading.Condition()

    def add(self, item):
        with self.changed:
            self.items.append(item)
            self.changed.notify_all()

    def sample(self, count, at_least):
        with self.changed:
            self.changed.wait_for(lambda: len(self.items) >= at_least)
            rows = torch.randint(len(self.items), (count,)).tolist()
            return [self.items[r] for r in rows]


class Actor(threading.Thread):
    def __init__(self, replay, steps):
        super().__init__(daemon=True)
        self.replay = replay
        self.steps = steps

    def run(self):
        time.sleep(2)  # the simulator starts
        state = torch.zeros(3)
        for step in range(self.steps):
            action = (step * 37) % 5 - 2
            after = 0.9 * state + 0.1 * action
            self.replay.add((state, after, float(-after.square().sum())))
            state = after
            if step % 50 == 0:
                time.sleep(0.01)


def main():
    torch.manual_seed(0)
    replay = Replay()
    Actor(replay, steps=2000).start()
    value = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(value.parameters(), lr=1e-3)
    for update in range(200):
        batch = replay.sample(32, at_least=500)
        states, _, rewards = zip(*batch)
        loss = nn.functional.mse_loss(value(torch.stack(states))[:, 0], torch.tensor(rewards))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
