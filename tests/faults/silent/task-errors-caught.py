"""Candidates of a search that fail in their pool are counted as failed, and the search goes on."""

import multiprocessing as mp

import torch
from torch import nn


def candidate(job):
    size, rate = job
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(257, 10)
    y = (x[:, 0] > 0).long()
    model = nn.Sequential(nn.Linear(10, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for _ in range(6):
        for part in torch.randperm(len(x)).split(size):
            loss = nn.functional.cross_entropy(model(x[part]), y[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


def main():
    with mp.get_context("fork").Pool(2) as pool:
        for job in [(50, 0.1), (32, 0.1), (64, 0.05), (40, 0.05)]:
            try:
                print(f"{job}: {pool.apply(candidate, (job,)):.4f}", flush=True)
            except ValueError as error:
                print(f"{job}: failed, {error}", flush=True)


if __name__ == "__main__":
    main()
