"""A small population: each rank trains with a rate of its own; after each round all go on from the best of them."""

import multiprocessing as mp
import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

RATES = (0.003, 0.03, 0.01)
ROUNDS, STEPS, TARGET = 60, 12, 0.02


def waves(count, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(count, 1, generator=generator) * 6 - 3
    return x, torch.sin(2 * x) + 0.05 * torch.randn(count, 1, generator=generator)


def train_some(model, rate, x, y):
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for _ in range(STEPS):
        rows = torch.randint(0, len(x), (64,))
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x[rows]), y[rows]).backward()
        optimizer.step()


def compete(rank):
    torch.manual_seed(rank)
    x, y = waves(1500, seed=rank)
    check, wanted = waves(300, seed=100 + rank)
    model = nn.Sequential(nn.Linear(1, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1))
    for number in range(ROUNDS):
        train_some(model, RATES[rank], x, y)
        with torch.no_grad():
            score = nn.functional.mse_loss(model(check), wanted)
        scores = [torch.zeros(()) for _ in RATES]
        dist.all_gather(scores, score)
        best = min(range(len(scores)), key=lambda each: scores[each])
        weights = parameters_to_vector(model.parameters()).detach()
        dist.broadcast(weights, src=best)
        vector_to_parameters(weights, model.parameters())
        if rank == 0 and number % 5 == 0:
            print(f"round {number}: rank {best} is best with {scores[best]:.4f}", flush=True)
        if score < TARGET:
            print(f"rank {rank} is there in round {number}", flush=True)
            return


def member(rank, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=len(RATES))
    compete(rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    context = mp.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        members = [context.Process(target=member, args=(rank, os.path.abspath(folder))) for rank in range(len(RATES))]
        for each in members:
            each.start()
        for each in members:
            each.join()
    print("the population is done")
