"""A learner in a process of its own; main prints how far it is until it has seen enough samples."""
import time
from multiprocessing import get_context

import torch
from torch import nn

SAMPLES = 20_000
context = get_context("fork")
seen = context.Value("i", 0)
net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 2))
net.share_memory()


def flowers(n):
    x = torch.randn(n, 20)
    return x, (x[:, :5].sum(1) > x[:, 5:9].pow(2).sum(1) - 3).long()


def learn():
    torch.set_num_threads(1)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    while True:
        x, y = flowers(64)
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        seen.value += len(x)
        time.sleep(0.004)


if __name__ == "__main__":
    torch.manual_seed(2)
    torch.set_num_threads(1)
    learner = context.Process(target=learn, daemon=True)
    learner.start()
    began = time.time()
    while seen.value < SAMPLES:
        time.sleep(0.5)
        print(f"{time.time() - began:.1f} s: {seen.value} samples", flush=True)
    learner.terminate()
    learner.join()
    x, y = flowers(2000)
    with torch.no_grad():
        right = (net(x).argmax(1) == y).float().mean().item()
    print(f"accuracy {right:.3f}", flush=True)
