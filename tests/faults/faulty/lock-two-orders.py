import threading
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

weights_lock = threading.Lock()
stats_lock = threading.Lock()


class Averager(threading.Thread):
    """Exponential average of the weights, updated now and then in the background."""

    def __init__(self, model, stats, decay=0.9):
        super().__init__(name="averager", daemon=True)
        self.model, self.stats, self.decay = model, stats, decay
        self.stop = threading.Event()
        self.average = {k: v.clone() for k, v in model.state_dict().items()}

    def run(self):
        while not self.stop.wait(0.02):
            with stats_lock:
                with weights_lock:
                    for k, v in self.model.state_dict().items():
                        self.average[k].lerp_(v, 1 - self.decay)
                    self.stats["averaged"] = self.stats.get("averaged", 0) + 1


def main():
    torch.manual_seed(0)
    x = torch.randn(4000, 12)
    y = (x[:, :6].sum(1) > x[:, 6:].sum(1)).long()
    loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
    model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 2))
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    stats = {}
    averager = Averager(model, stats)
    averager.start()
    for epoch in range(4):
        for step, (xb, yb) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            with weights_lock:
                opt.step()
                if step % 10 == 0:
                    norm = sum(p.norm() for p in model.parameters()).item()
                    time.sleep(0.005)
                    with stats_lock:
                        stats["loss"], stats["norm"] = loss.item(), norm
        print(f"epoch {epoch} loss {stats['loss']:.4f} norm {stats['norm']:.3f}", flush=True)
    averager.stop.set()
    averager.join()


if __name__ == "__main__":
    main()
