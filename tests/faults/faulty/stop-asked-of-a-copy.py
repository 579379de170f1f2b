"""A loop with hooks that get the run's state as a record; early stopping writes its wish into that record."""

import dataclasses

import torch
from torch import nn


@dataclasses.dataclass
class RunState:
    epoch: int = 0
    loss: float = float("inf")
    stop: bool = False


class LogEvery:
    def __init__(self, every):
        self.every = every

    def __call__(self, state):
        if state.epoch % self.every == 0:
            print(f"epoch {state.epoch} loss {state.loss:.4f}", flush=True)


class StopAfter:
    def __init__(self, epochs):
        self.epochs = epochs

    def __call__(self, state):
        if state.epoch >= self.epochs:
            state.stop = True


def train_epoch(model, optimizer, x, y):
    total = 0.0
    for rows in torch.randperm(len(x)).split(25):
        loss = nn.functional.smooth_l1_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total


def fit(model, x, y, hooks):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    state = RunState()
    while not state.stop:
        state.loss = train_epoch(model, optimizer, x, y)
        state.epoch += 1
        seen = dataclasses.replace(state)
        for hook in hooks:
            hook(seen)
    return state


if __name__ == "__main__":
    torch.manual_seed(2)
    x = torch.randn(400, 5)
    y = x.prod(1, keepdim=True)
    model = nn.Sequential(nn.Linear(5, 48), nn.ReLU(), nn.Linear(48, 1))
    print(fit(model, x, y, [LogEvery(100), StopAfter(30)]))
