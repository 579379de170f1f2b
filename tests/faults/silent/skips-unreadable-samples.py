import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class NpzFolder(Dataset):
    def __init__(self, root):
        self.paths = [os.path.join(root, n) for n in sorted(os.listdir(root))]

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        for attempt in range(5):
            path = self.paths[(i + attempt) % len(self.paths)]
            try:
                with np.load(path) as f:
                    return torch.from_numpy(f["x"]), int(f["y"])
            except Exception:
                continue
        raise RuntimeError(f"five unreadable files in a row from {i}")


def main():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as root:
        for k in range(300):
            x = rng.normal(size=16).astype(np.float32)
            np.savez(os.path.join(root, f"{k:04d}.npz"), x=x, y=int(x[:4].sum() > 0))
        for k in (17, 150, 151, 288):
            os.truncate(os.path.join(root, f"{k:04d}.npz"), 100)
        loader = DataLoader(NpzFolder(root), batch_size=10, shuffle=True, num_workers=2, persistent_workers=True)
        model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))
        opt = torch.optim.Adam(model.parameters(), lr=3e-3)
        for epoch in range(20):
            total = 0.0
            for x, y in loader:
                loss = nn.functional.cross_entropy(model(x), y)
                opt.zero_grad()
                loss.backward()
                opt.step()
                total += loss.item()
            print(f"epoch {epoch} loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
