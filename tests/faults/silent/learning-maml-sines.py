"""MAML on sine regression: inner step by autograd.grad(create_graph=True) on fast weights, outer Adam."""

import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)


def sample_task():
    amplitude = 0.5 + 2.5 * torch.rand(1)
    phase = math.pi * torch.rand(1)

    def draw(n):
        x = 10 * torch.rand(n, 1) - 5
        return x, amplitude * torch.sin(x + phase)

    return draw


model = nn.Sequential(nn.Linear(1, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 1))
meta_opt = torch.optim.Adam(model.parameters(), lr=3e-3)
INNER_LR = 0.02

window = []
for step in range(600):
    meta_loss = 0.0
    for _ in range(4):
        draw = sample_task()
        x, y = draw(10)
        weights = dict(model.named_parameters())
        inner = F.mse_loss(functional_call(model, weights, (x,)), y)
        grads = torch.autograd.grad(inner, list(weights.values()), create_graph=True)
        fast = {k: w - INNER_LR * g for (k, w), g in zip(weights.items(), grads)}
        xq, yq = draw(10)
        meta_loss = meta_loss + F.mse_loss(functional_call(model, fast, (xq,)), yq)
    meta_loss = meta_loss / 4
    meta_opt.zero_grad()
    meta_loss.backward()
    meta_opt.step()
    window.append(meta_loss.item())
    if (step + 1) % 75 == 0:
        print(f"meta step {step + 1} post-adaptation mse {sum(window[-75:]) / 75:.4f}")
