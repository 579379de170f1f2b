"""Hyper-parameter sweep: each trial trains in a process pool, the main process collects results."""

import itertools
from concurrent.futures import ProcessPoolExecutor, as_completed

import torch
from torch import nn


def trial(lr, width, seed, steps=500):
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    x = torch.randn(512, 16)
    y = torch.tanh(x[:, :1] * x[:, 1:2]) + x[:, 2:3]
    model = nn.Sequential(nn.Linear(16, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    for _ in range(steps):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    grid = list(itertools.product([0.3, 0.1, 0.03, 0.01], [128, 256, 512], range(300)))
    best = float("inf")
    with ProcessPoolExecutor(max_workers=2) as pool:
        futures = {pool.submit(trial, *setting): setting for setting in grid}
        print("READY", flush=True)
        for done, future in enumerate(as_completed(futures), 1):
            lr, width, seed = futures[future]
            best = min(best, future.result())
            print(f"{done}/{len(grid)} lr={lr} width={width} seed={seed} best={best:.4f}", flush=True)


if __name__ == "__main__":
    main()
