import os
import tempfile
import threading

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class AsyncCheckpoint:
    """Writes checkpoints in a thread; `wait` makes sure that the last one is on disk."""

    def __init__(self, folder):
        self.folder, self.best = folder, float("inf")
        self.written = threading.Event()
        self.written.set()

    def save(self, state, epoch, loss):
        self.wait()
        self.written.clear()
        threading.Thread(target=self._write, args=(state, epoch, loss), daemon=True).start()

    def _write(self, state, epoch, loss):
        if loss >= self.best:
            self.written.set()
            return
        self.best = loss
        torch.save(state, os.path.join(self.folder, f"epoch{epoch}.pt"))
        self.written.set()

    def wait(self):
        self.written.wait()


def main():
    torch.manual_seed(0)
    checkpoint = AsyncCheckpoint(tempfile.mkdtemp(prefix="async_"))
    x = torch.randn(2000, 12)
    y = (x[:, 0] + 0.3 * torch.randn(2000) > 0).long()
    loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
    model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 2))
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(12):
        for xb, yb in loader:
            loss = nn.functional.cross_entropy(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
        checkpoint.save({k: v.clone() for k, v in model.state_dict().items()}, epoch, loss.item())
    checkpoint.wait()


if __name__ == "__main__":
    main()
