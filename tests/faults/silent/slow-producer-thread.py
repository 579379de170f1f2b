import os
import queue
import threading
import time

import torch
from torch import nn

SCALE = float(os.environ.get("SCALE", "1"))


def simulate(out, rounds=3):
    """A simulator that takes five seconds for each set of episodes."""
    for k in range(rounds):
        time.sleep(5 * SCALE)
        g = torch.Generator().manual_seed(k)
        x = torch.randn(400, 6, generator=g)
        out.put((x, x.prod(1, keepdim=True)))
    out.put(None)


def main():
    torch.manual_seed(0)
    episodes = queue.Queue(maxsize=1)
    threading.Thread(target=simulate, args=(episodes,), name="simulator", daemon=True).start()
    model = nn.Sequential(nn.Linear(6, 64), nn.Tanh(), nn.Linear(64, 1))
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    received = 0
    while (item := episodes.get()) is not None:
        x, y = item
        for idx in torch.randperm(len(x)).split(20):
            loss = nn.functional.mse_loss(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        received += 1
        print(f"round {received} mse {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
