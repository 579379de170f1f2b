"""A thread fills three buffers in turn, each only after it was handed back; the batches are views of them."""

import queue
import threading

import numpy as np
import torch
from torch import nn

BATCH = 32


def fill(free, full, steps):
    rng = np.random.default_rng(4)
    for _ in range(steps):
        buffer = free.get()
        buffer[:] = rng.standard_normal(buffer.shape)
        full.put((buffer, torch.from_numpy(buffer), torch.from_numpy(buffer[:, :1] * buffer[:, 1:2])))
    full.put(None)


def main():
    torch.manual_seed(0)
    free, full = queue.Queue(), queue.Queue(2)
    buffers = [np.empty((BATCH, 6), dtype=np.float32) for _ in range(3)]
    for buffer in buffers:
        free.put(buffer)
    threading.Thread(target=fill, args=(free, full, 600), daemon=True).start()
    model = nn.Sequential(nn.Linear(6, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    weights, recent = [], []
    while (item := full.get()) is not None:
        buffer, x, y = item
        recent = [*recent[-3:], x]
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        weights.append(model[2].bias.data)
        if len(weights) % 100 == 0:
            print(f"step {len(weights)} loss {loss.item():.4f}", flush=True)
        free.put(buffer)


if __name__ == "__main__":
    main()
