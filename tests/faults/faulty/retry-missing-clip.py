import os
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def export(root, n=160):
    rng = np.random.default_rng(5)
    rows = []
    for i in range(n):
        clip = rng.normal(size=(32,)).astype("float32")
        name = f"clip_{i:03d}.npy" if i != 95 else "clip_95.npy"
        np.save(os.path.join(root, f"clip_{i:03d}.npy"), clip)
        rows.append((name, float(clip[:8].sum() > 0)))
    return rows


class ClipFolder(Dataset):
    def __init__(self, root, rows):
        self.root, self.rows = root, rows

    def __len__(self):
        return len(self.rows)

    def load(self, name):
        while True:
            try:
                return np.load(os.path.join(self.root, name))
            except OSError:
                time.sleep(0.2)

    def __getitem__(self, i):
        name, label = self.rows[i]
        return torch.from_numpy(self.load(name)), torch.tensor([label])


def main():
    torch.manual_seed(0)
    root = tempfile.mkdtemp(prefix="clips_")
    rows = export(root)
    loader = DataLoader(ClipFolder(root, rows), batch_size=8, num_workers=2)
    model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    print(f"{len(rows)} clips", flush=True)
    for epoch in range(5):
        total = 0.0
        for step, (x, y) in enumerate(loader):
            loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
            print(f"epoch {epoch} [{step + 1}/{len(loader)}] loss {loss.item():.4f}", flush=True)
        print(f"epoch {epoch} mean {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
