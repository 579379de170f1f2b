"""Graphs that live longer than a step and are meant to: windows of truncated backpropagation, a part built once and used
in every step, accumulated gradients, an inner loop of meta-learning, sequences that become longer."""

import torch
from torch import nn


def truncated(steps=300, window=20):
    read, carry, head = nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 1)
    parameters = [*read.parameters(), *head.parameters()]
    opt = torch.optim.SGD(parameters, lr=1e-3)
    state = torch.zeros(4, 16)
    for step in range(steps):
        if step % window == 0:
            state = state.detach()
        state = 0.9 * state + read(torch.randn(4, 8))
        loss = state.pow(2).mean()
        opt.zero_grad()
        loss.backward(retain_graph=True)
        opt.step()


def kept_part(steps=200):
    basis, model = torch.randn(64, 8, requires_grad=True), nn.Linear(8, 1)
    prior = (basis.exp().sum(1).log() * 0.01).pow(2).sum()
    opt = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(steps):
        loss = model(torch.randn(16, 8)).pow(2).mean() + prior
        opt.zero_grad()
        loss.backward(retain_graph=True)
        opt.step()


def accumulated(steps=100, parts=4):
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    opt = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(steps):
        opt.zero_grad()
        losses = [model(torch.randn(16, 8)).pow(2).mean() for _ in range(parts)]
        for loss in losses:
            (loss / parts).backward()
        opt.step()


def meta(steps=100, inner=5):
    weight = torch.randn(8, 1, requires_grad=True)
    opt = torch.optim.Adam([weight], lr=1e-2)
    for _ in range(steps):
        fast, x, y = weight, torch.randn(32, 8), torch.randn(32, 1)
        for _ in range(inner):
            (gradient,) = torch.autograd.grad((x @ fast - y).pow(2).mean(), fast, create_graph=True)
            fast = fast - 0.1 * gradient
        opt.zero_grad()
        (x @ fast - y).pow(2).mean().backward()
        opt.step()


def longer(steps=300):
    cell, head = nn.GRUCell(8, 16), nn.Linear(16, 1)
    opt = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=1e-3)
    for step in range(steps):
        state = torch.zeros(4, 16)
        for _ in range(2 + step // 20):
            state = cell(torch.randn(4, 8), state)
        loss = head(state).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()


def main():
    torch.manual_seed(0)
    for part in (truncated, longer, kept_part, accumulated, meta):
        part()
        print(part.__name__, flush=True)


if __name__ == "__main__":
    main()
