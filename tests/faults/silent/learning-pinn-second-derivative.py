"""A physics-informed net for u'' = -pi^2 sin(pi x), u(0)=u(1)=0, with second derivatives by autograd.grad."""

import argparse
import math

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
boundary = torch.tensor([[0.0], [1.0]])


def residual(x):
    u = model(x)
    du = torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)[0]
    d2u = torch.autograd.grad(du, x, torch.ones_like(du), create_graph=True)[0]
    return d2u + math.pi**2 * torch.sin(math.pi * x)


for step in range(1500):
    x = torch.rand(64, 1, requires_grad=True)
    physics = residual(x).pow(2).mean()
    edge = model(boundary).pow(2).mean()
    loss = physics + 50 * edge
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 150 == 0 or step == 1499:
        with torch.no_grad():
            grid = torch.linspace(0, 1, 101).unsqueeze(1)
            err = (model(grid) - torch.sin(math.pi * grid)).abs().max()
        print(f"step {step} loss {loss.item():.5f} max error {err:.4f}")
