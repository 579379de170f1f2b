"""Augmented views are made by an executor; main waits for all of them before it says that the weights are ready."""

import threading
from concurrent.futures import ThreadPoolExecutor, wait

import torch
from torch import nn


class Views:
    def __init__(self, model):
        self.model = model
        self.ready = threading.Event()

    def hard_view(self, x):
        self.ready.wait()
        with torch.no_grad():
            direction = self.model(x).mean(0)
        return x + 0.1 * direction[: x.shape[1]].sign()


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 12))
    views = Views(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    pool = ThreadPoolExecutor(max_workers=4)
    for step in range(40):
        x = torch.randn(48, 12)
        loss = nn.functional.mse_loss(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 20:
            futures = [pool.submit(views.hard_view, part) for part in x.split(12)]
            done, _ = wait(futures)
            views.ready.set()
            x = torch.cat([f.result() for f in done])
            print("hard views", tuple(x.shape), flush=True)
    pool.shutdown()
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
