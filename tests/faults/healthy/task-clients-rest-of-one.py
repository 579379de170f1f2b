"""Federated averaging: every client trains in a process of an executor, and records more between the rounds."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import torch
from torch import nn

BATCH = 16


def build():
    return nn.Sequential(nn.Linear(12, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 3))


def train_client(job):
    client, have, weights = job
    torch.set_num_threads(1)
    g = torch.Generator().manual_seed(client)
    x = torch.randn(64, 12, generator=g)[:have]
    y = (x[:, :3] + 0.1 * client).argmax(1)
    model = build()
    model.load_state_dict(weights)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.8)
    for part in torch.randperm(have, generator=g).split(BATCH):
        if len(part) == 1:
            continue
        loss = nn.functional.cross_entropy(model(x[part]), y[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return {name: value.numpy() for name, value in model.state_dict().items()}, loss.item()


def main():
    torch.manual_seed(3)
    shared, have = build(), [22, 30, 40, 27]
    with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
        for turn in range(6):
            jobs = [(client, count, shared.state_dict()) for client, count in enumerate(have)]
            results = list(pool.map(train_client, jobs))
            mean = {name: sum(torch.as_tensor(w[name]).float() for w, _ in results) / 4 for name in results[0][0]}
            shared.load_state_dict(mean)
            print(f"round {turn} loss {sum(loss for _, loss in results) / 4:.3f}", flush=True)
            have = [count + 2 + client % 2 for client, count in enumerate(have)]


if __name__ == "__main__":
    main()
