import queue
import threading

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class ImageLog:
    """Collects sample grids; a background thread flushes them in groups of eight."""

    def __init__(self):
        self.lock = threading.Lock()
        self.items = queue.Queue()
        self.written = 0
        threading.Thread(target=self._flush, name="image-log", daemon=True).start()

    def _flush(self):
        while True:
            grids = [self.items.get() for _ in range(8)]
            with self.lock:
                self.written += sum(g.numel() for g in grids)

    def add(self, grid):
        self.items.put(grid)

    def count(self):
        with self.lock:
            return self.written


def main():
    torch.manual_seed(0)
    x = torch.rand(2000, 1, 8, 8)
    loader = DataLoader(TensorDataset(x), batch_size=20, shuffle=True)
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 12), nn.ReLU(), nn.Linear(12, 64))
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    log = ImageLog()
    for epoch in range(5):
        for step, (xb,) in enumerate(loader):
            out = net(xb)
            loss = nn.functional.mse_loss(out, xb.flatten(1))
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 10 == 0:
                log.add(out[:4].detach())
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
        print(f"  {log.count() // 64} images logged", flush=True)


if __name__ == "__main__":
    main()
