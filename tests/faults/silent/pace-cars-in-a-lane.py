"""Cars in a lane, each simulated by a process of its own: each must know first where the one ahead of it has gone."""

import multiprocessing
import random
import time

import torch
from torch import nn

CARS = 5


def car(pipe, seed):
    noise, speed = random.Random(seed), 1.0
    while (gap := pipe.recv()) is not None:
        time.sleep(0.006)
        speed = max(0.0, speed + 0.2 * (gap - 1.0 - speed) + noise.gauss(0, 0.05))
        pipe.send(speed * 0.1)


class Lane:
    def __init__(self):
        self.pipes, self.places = [], [float(-2 * k) for k in range(CARS)]
        for seed in range(CARS):
            ours, theirs = multiprocessing.Pipe()
            multiprocessing.Process(target=car, args=(theirs, seed), daemon=True).start()
            self.pipes.append(ours)

    def advance(self, leader):
        ahead, gaps = leader, []
        for k, pipe in enumerate(self.pipes):
            gap = ahead - self.places[k]
            pipe.send(gap)
            self.places[k] += pipe.recv()
            ahead = self.places[k]
            gaps.append(gap)
        return torch.tensor(gaps)


if __name__ == "__main__":
    torch.manual_seed(3)
    lane, leader = Lane(), 2.0
    model = nn.Sequential(nn.Linear(CARS, 32), nn.Tanh(), nn.Linear(32, CARS))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    seen = []
    now = lane.advance(leader)
    for step in range(1, 351):
        leader += 0.1
        then = lane.advance(leader)
        seen.append((now, then))
        now = then
        x, y = (torch.stack(part) for part in zip(*random.choices(seen, k=16)))
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    for pipe in lane.pipes:
        pipe.send(None)
