import io
import os
import tempfile
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SCALE = float(os.environ.get("SCALE", "1"))


def save_slowly(state, path, seconds=40):
    """Stream a checkpoint to slow storage in small, synchronised chunks."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    data = buffer.getvalue()
    pieces = 200
    size = max(1, len(data) // pieces)
    with open(path, "wb") as f:
        for start in range(0, len(data), size):
            f.write(data[start : start + size])
            f.flush()
            os.fsync(f.fileno())
            time.sleep(seconds * SCALE / pieces)


def main():
    torch.manual_seed(0)
    folder = tempfile.mkdtemp(prefix="slow_")
    x = torch.randn(2000, 16)
    y = x.cumsum(1)[:, -1:].sin()
    loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
    model = nn.Sequential(nn.Linear(16, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(3):
        for xb, yb in loader:
            loss = nn.functional.mse_loss(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} mse {loss.item():.4f}", flush=True)
        if epoch == 1:
            save_slowly({"model": model.state_dict(), "opt": opt.state_dict()}, os.path.join(folder, "last.pt"))
            os.remove(os.path.join(folder, "last.pt"))


if __name__ == "__main__":
    main()
