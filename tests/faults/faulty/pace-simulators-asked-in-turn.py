"""Four tanks, each simulated by a process of its own, are driven at random; a model learns what they do next."""

import multiprocessing
import random
import time

import torch
from torch import nn

TANKS, PERIOD = 4, 0.01


def tank(pipe, seed):
    noise, level, heat = random.Random(seed), 0.5, 0.2
    while (valve := pipe.recv()) is not None:
        time.sleep(PERIOD)  # of the controller
        level = min(1.0, max(0.0, level + 0.1 * (valve - level) + noise.gauss(0, 0.01)))
        heat += 0.05 * (level - heat)
        pipe.send((level, heat))


class Tank:
    def __init__(self, seed):
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=tank, args=(theirs, seed), daemon=True)
        self.process.start()

    def ask(self, valve):
        self.pipe.send(valve)

    def answer(self):
        return self.pipe.recv()

    def step(self, valve):
        self.ask(valve)
        return self.answer()


def advance(tanks, valves):
    return torch.tensor([tank.step(valve) for tank, valve in zip(tanks, valves)])


if __name__ == "__main__":
    torch.manual_seed(0)
    tanks = [Tank(seed) for seed in range(TANKS)]
    model = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    seen = []
    now = advance(tanks, [0.5] * TANKS)
    for step in range(1, 321):
        valves = torch.rand(TANKS)
        then = advance(tanks, valves.tolist())
        seen.append((torch.cat([now, valves[:, None]], 1), then))
        now = then
        known, next_ = (torch.cat(part) for part in zip(*random.choices(seen, k=16)))
        loss = nn.functional.mse_loss(model(known), next_)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step} loss {loss.item():.5f}", flush=True)
    for each in tanks:
        each.ask(None)
