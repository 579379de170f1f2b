"""Random architecture search: each candidate is compiled with AOTAutograd, then trained a few steps."""

import random
import time

import torch
import torch._dynamo
from torch import nn


class Residual(nn.Module):
    def __init__(self, width, act):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.act = act

    def forward(self, x):
        return x + self.down(self.act(self.up(self.norm(x))))


def sample_architecture():
    width = random.choice([32, 48, 64, 96])
    depth = random.randint(12, 30)
    act = random.choice([nn.GELU, nn.SiLU, nn.Mish, nn.ReLU])
    return nn.Sequential(nn.Linear(20, width), *[Residual(width, act()) for _ in range(depth)], nn.Linear(width, 1))


def evaluate(candidate, x, y, steps=5):
    torch._dynamo.reset()
    model = torch.compile(candidate, backend="aot_eager")
    opt = torch.optim.Adam(candidate.parameters(), lr=1e-3)
    for _ in range(steps):
        loss = nn.functional.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


def main():
    random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(64, 20)
    y = x.pow(2).sum(1, keepdim=True)
    best = float("inf")
    print("READY", flush=True)
    for trial in range(100_000):
        start = time.perf_counter()
        candidate = sample_architecture()
        score = evaluate(candidate, x, y)
        best = min(best, score)
        took = time.perf_counter() - start
        print(f"trial {trial}: {len(candidate) - 2} blocks, loss {score:.3f}, best {best:.3f}, {took:.1f}s", flush=True)


if __name__ == "__main__":
    main()
