import json
import os
import queue
import tempfile
import threading

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class JsonLog:
    """Metrics go through a bounded queue to a writer thread."""

    def __init__(self, path):
        self.queue = queue.Queue(maxsize=64)
        self.thread = threading.Thread(target=self._write, args=(path,), name="json-log", daemon=True)
        self.thread.start()

    def _write(self, path):
        with open(path, "w") as f:
            while (record := self.queue.get()) is not None:
                f.write(json.dumps(record, default=str) + "\n")

    def log(self, **record):
        self.queue.put(record)

    def close(self):
        self.queue.put(None)
        self.thread.join()


def main():
    torch.manual_seed(0)
    log = JsonLog(os.path.join(tempfile.mkdtemp(prefix="jsonl_"), "metrics.jsonl"))
    x = torch.randn(3000, 8)
    y = (x[:, 0] * x[:, 1] > 0).long()
    loader = DataLoader(TensorDataset(x, y), batch_size=30, shuffle=True)
    model = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 2))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(4):
        hits = 0
        for step, (xb, yb) in enumerate(loader):
            out = model(xb)
            loss = nn.functional.cross_entropy(out, yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            hits += (out.argmax(1) == yb).sum()
            log.log(epoch=epoch, step=step, loss=loss.item())
        log.log(epoch=epoch, accuracy=hits / len(x))
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
    log.close()


if __name__ == "__main__":
    main()
