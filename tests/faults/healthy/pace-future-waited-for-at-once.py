"""The tiles of a batch come from a tile server, with eight threads to fetch them; a network learns to tell them apart."""

import random
import time
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

SIDE, TILES, LATENCY = 16, 400, 0.005


def fetch(number):
    """As a tile server answers: the way there and back takes most of the time."""
    time.sleep(LATENCY)
    numbers = random.Random(number)
    kind = number % 3
    return [numbers.gauss(kind - 1, 2) for _ in range(SIDE * SIDE)], kind


class Tiles:
    def __init__(self, size):
        self.size = size
        self.pool = ThreadPoolExecutor(max_workers=8)

    def batch(self, numbers):
        tiles, kinds = [], []
        futures = [self.pool.submit(fetch, number) for number in numbers]
        for future in futures:
            tile, kind = future.result()
            tiles.append(tile)
            kinds.append(kind)
        return torch.tensor(tiles), torch.tensor(kinds)

    def batches(self, count):
        for _ in range(count):
            yield self.batch(random.choices(range(TILES), k=self.size))


if __name__ == "__main__":
    random.seed(1)
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(SIDE * SIDE, 64), nn.ReLU(), nn.Linear(64, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step, (x, y) in enumerate(Tiles(16).batches(140), 1):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
