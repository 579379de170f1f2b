import threading

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class RunningMetrics:
    """Metrics shared between the training loop and the reporter thread."""

    def __init__(self):
        self.lock = threading.Lock()
        self.total, self.count, self.best = 0.0, 0, float("inf")

    def update(self, value, n):
        with self.lock:
            self.total += value * n
            self.count += n

    def mean(self):
        with self.lock:
            return self.total / max(1, self.count)

    def finish_epoch(self):
        with self.lock:
            mean = self.mean()
            self.best = min(self.best, mean)
            self.total, self.count = 0.0, 0
            return mean


def report(metrics, stop):
    while not stop.wait(0.5):
        print(f"  running loss {metrics.mean():.4f}", flush=True)


def main():
    torch.manual_seed(0)
    x = torch.randn(4000, 12)
    y = (x[:, :3].prod(1) > 0).long()
    loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
    model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 2))
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    metrics, stop = RunningMetrics(), threading.Event()
    threading.Thread(target=report, args=(metrics, stop), daemon=True).start()
    for epoch in range(5):
        for xb, yb in loader:
            loss = nn.functional.cross_entropy(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            metrics.update(loss.item(), len(yb))
        mean = metrics.finish_epoch()
        print(f"epoch {epoch} loss {mean:.4f} best {metrics.best:.4f}", flush=True)
    stop.set()


if __name__ == "__main__":
    main()
