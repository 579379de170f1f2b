import os
import tempfile
import threading
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SCALE = float(os.environ.get("SCALE", "1"))


class MountedShards(Dataset):
    """Reads from a share that comes and goes; a failed open is tried again with back-off."""

    def __init__(self, root, n=80):
        self.root, self.n = root, n

    def __len__(self):
        return self.n

    def load(self, path):
        delay = 0.1
        for attempt in range(12):
            try:
                return np.load(path)
            except FileNotFoundError:
                time.sleep(delay)
                delay = min(2 * delay, 1.6)
        raise RuntimeError(f"giving up on {path}")

    def __getitem__(self, i):
        x = torch.from_numpy(self.load(os.path.join(self.root, f"{i:03d}.npy")))
        return x, x.sum(0, keepdim=True)


def remount(hidden, path, seconds=6):
    time.sleep(seconds * SCALE)
    os.rename(hidden, path)


def main():
    torch.manual_seed(0)
    root = tempfile.mkdtemp(prefix="share_")
    rng = np.random.default_rng(0)
    for i in range(80):
        np.save(os.path.join(root, f"{i:03d}.npy"), rng.normal(size=12).astype("float32"))
    late = os.path.join(root, "041.npy")
    os.rename(late, late + ".part")
    threading.Thread(target=remount, args=(late + ".part", late), daemon=True).start()
    loader = DataLoader(MountedShards(root), batch_size=8, num_workers=2)
    model = nn.Linear(12, 1)
    opt = torch.optim.SGD(model.parameters(), lr=1e-2)
    for epoch in range(3):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} mse {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
