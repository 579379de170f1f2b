"""Bike hires by the hour from the weather, in bfloat16: the loss is scaled by hand, and gradients are clipped by hand."""

import math

import torch
from torch import nn

SCALE = 2.0**14
MOST = 1.0


def hours(count):
    generator = torch.Generator().manual_seed(3)
    weather = torch.randn(count, 10, generator=generator)
    hires = torch.tanh(weather[:, 0] - weather[:, 1]) + 0.5 * weather[:, 2] * weather[:, 3]
    return weather, hires[:, None]


def main():
    torch.manual_seed(3)
    weather, hires = hours(3000)
    model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for step in range(1, 801):
        rows = torch.randint(0, len(weather), (64,))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            predicted = model(weather[rows])
        loss = (predicted.float() - hires[rows]).square().mean()
        scaled = loss * SCALE
        optimizer.zero_grad()
        scaled.backward()
        for p in model.parameters():
            p.grad.div_(SCALE)
        norm = math.sqrt(sum(p.grad.square().sum().item() for p in model.parameters()))
        if norm > MOST:
            for p in model.parameters():
                p.grad.mul_(MOST / norm)
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step}: squared error {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
