import os
import tempfile
from contextlib import ExitStack

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Columns(Dataset):
    """One file per column; reading a row means opening all of them."""

    def __init__(self, root, columns, rows):
        self.paths = [os.path.join(root, f"col{c:03d}.bin") for c in range(columns)]
        self.rows = rows

    def __len__(self):
        return self.rows

    def __getitem__(self, i):
        with ExitStack() as stack:
            files = [stack.enter_context(open(p, "rb")) for p in self.paths]
            values = []
            for f in files:
                f.seek(i * 4)
                values.append(f.read(4))
        row = torch.from_numpy(np.frombuffer(b"".join(values), dtype=np.float32).copy())
        return row[:-1], row[-1:]


def main():
    torch.manual_seed(0)
    columns, rows = 121, 600
    rng = np.random.default_rng(0)
    table = rng.normal(size=(rows, columns)).astype(np.float32)
    table[:, -1] = table[:, :10].mean(1) * 2
    with tempfile.TemporaryDirectory() as root:
        for c in range(columns):
            table[:, c].tofile(os.path.join(root, f"col{c:03d}.bin"))
        loader = DataLoader(Columns(root, columns, rows), batch_size=20, shuffle=True)
        model = nn.Sequential(nn.Linear(columns - 1, 64), nn.ReLU(), nn.Linear(64, 1))
        opt = torch.optim.Adam(model.parameters(), lr=1e-3)
        for epoch in range(4):
            total = 0.0
            for x, y in loader:
                loss = nn.functional.mse_loss(model(x), y)
                opt.zero_grad()
                loss.backward()
                opt.step()
                total += loss.item()
            print(f"epoch {epoch} mse {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
