"""Records of two tables that belong together, by two towers; Adam is written out."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class Tower(nn.Module):
    def __init__(self, inputs, outputs=12):
        super().__init__()
        self.inner, self.outer = nn.Linear(inputs, 64), nn.Linear(64, outputs)

    def forward(self, x):
        return F.normalize(self.outer(F.gelu(self.inner(x))), dim=-1)


class Matcher(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = Tower(20), Tower(16)
        self.log_scale = nn.Parameter(torch.tensor(math.log(5.0)))

    def bank(self, tower, rows, chunk=32):
        filled = torch.empty(len(rows), tower.outer.out_features)
        for start in range(0, len(rows), chunk):
            found = tower(rows[start : start + chunk])
            filled[start : start + chunk] = found
        return filled

    def forward(self, left, right):
        return self.log_scale.exp() * (self.bank(self.left, left) @ self.bank(self.right, right).t())


def adam(params, state, t, rate=1e-3, b1=0.9, b2=0.99):
    for p in params:
        if p.grad is None:
            continue
        m, v = state.setdefault(p, (torch.zeros_like(p), torch.zeros_like(p)))
        with torch.no_grad():
            m.lerp_(p.grad, 1 - b1)
            v.lerp_(p.grad.square(), 1 - b2)
            p -= rate * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + 1e-8)
        p.grad = None


def main(steps=900, batch=64):
    torch.manual_seed(21)
    torch.set_num_threads(1)
    hidden = torch.randn(2000, 6)
    left, right = torch.tanh(hidden @ torch.randn(6, 20)), torch.sin(0.7 * hidden @ torch.randn(6, 16))
    model, state = Matcher(), {}
    params = list(model.parameters())
    wanted = torch.arange(batch)
    for t in range(1, steps + 1):
        rows = torch.randint(0, len(hidden), (batch,))
        scores = model(left[rows], right[rows])
        loss = 0.5 * (F.cross_entropy(scores, wanted) + F.cross_entropy(scores.t(), wanted))
        loss.backward()
        adam(params, state, t)
        if t % 150 == 0:
            print(f"step {t} loss {loss.item():.4f} scale {model.log_scale.exp().item():.2f}", flush=True)


if __name__ == "__main__":
    main()
