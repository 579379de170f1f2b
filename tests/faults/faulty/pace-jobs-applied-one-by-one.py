"""Each round a pool of processes measures how well a few candidate coils do on a rig; a model learns to predict it."""

import multiprocessing
import random
import time

import torch
from torch import nn

COILS = 6


def measure(coil):
    """The rig answers after a while."""
    time.sleep(0.008)
    turns, gap, current = coil
    return turns * current / (0.2 + gap) + random.gauss(0, 0.02)


def examples(pool, coils):
    return [pool.apply(measure, (coil,)) for coil in coils]


def main():
    torch.manual_seed(2)
    random.seed(2)
    known, measured = [], []
    model = nn.Sequential(nn.Linear(3, 48), nn.ReLU(), nn.Linear(48, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        for round_ in range(1, 241):
            coils = [[random.random() for _ in range(3)] for _ in range(COILS)]
            known += coils
            measured += examples(pool, coils)
            picked = random.choices(range(len(known)), k=32)
            x = torch.tensor([known[index] for index in picked])
            y = torch.tensor([[measured[index]] for index in picked])
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if round_ % 30 == 0:
                print(f"round {round_} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
