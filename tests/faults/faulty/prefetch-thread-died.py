import queue
import threading

import numpy as np
import torch
from torch import nn


def read_rows(n=3000):
    rng = np.random.default_rng(0)
    for i in range(n):
        x = rng.normal(size=8)
        label = "1" if x.sum() > 0 else "0"
        if i == 1777:
            label = ""
        yield ",".join(f"{v:.4f}" for v in x) + "," + label


class Prefetcher:
    """Parses rows in a background thread and hands out batches."""

    def __init__(self, batch_size, depth=4):
        self.batch_size = batch_size
        self.queue = queue.Queue(depth)
        threading.Thread(target=self._fill, name="prefetch", daemon=True).start()

    def _fill(self):
        rows = []
        for line in read_rows():
            *features, label = line.split(",")
            rows.append([float(v) for v in features] + [float(label)])
            if len(rows) == self.batch_size:
                self.queue.put(torch.tensor(rows))
                rows = []
        self.queue.put(None)

    def __iter__(self):
        while True:
            batch = self.queue.get()
            if batch is None:
                return
            yield batch[:, :-1], batch[:, -1:]


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(3):
        for step, (x, y) in enumerate(Prefetcher(batch_size=50)):
            loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
