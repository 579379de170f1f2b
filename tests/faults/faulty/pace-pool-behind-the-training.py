"""Graphs are built by a pool of processes, a few batches ahead; one process needs longer than the training."""

import multiprocessing
import random

import torch
from torch import nn

NODES = 90


def paths(edges):
    """Floyd and Warshall: the length of the shortest way between all nodes."""
    far = [[0 if i == j else NODES for j in range(NODES)] for i in range(NODES)]
    for i, j in edges:
        far[i][j] = far[j][i] = 1
    for k in range(NODES):
        for i in range(NODES):
            through = far[i][k]
            for j in range(NODES):
                if through + far[k][j] < far[i][j]:
                    far[i][j] = through + far[k][j]
    return far


def example(seed):
    numbers = random.Random(seed)
    edges = [(numbers.randrange(NODES), numbers.randrange(NODES)) for _ in range(2 * NODES)]
    return paths(edges), len(set(edges)) / NODES


def train(model, optimizer, made):
    for step, (far, density) in enumerate(made):
        x = torch.tensor(far, dtype=torch.float32).flatten() / NODES
        loss = nn.functional.mse_loss(model(x), torch.tensor([density]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    torch.manual_seed(2)
    model = nn.Sequential(nn.Linear(NODES * NODES, 128), nn.ReLU(), nn.Linear(128, 1))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        train(model, torch.optim.Adam(model.parameters(), lr=1e-4), pool.imap(example, range(800)))
