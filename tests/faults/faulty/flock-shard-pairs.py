import fcntl
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class PairedViews(Dataset):
    """Contrastive pairs; each shard file is locked while a row is read and its use count updated."""

    def __init__(self, root, shards=4, rows=40, dim=16):
        self.root, self.rows, self.dim = root, rows, dim
        rng = np.random.default_rng(0)
        for s in range(shards):
            rng.normal(size=(rows, dim)).astype("float32").tofile(self.path(s))
        self.pairs = [(s, (s + 1) % 2 if s < 2 else 5 - s) for i in range(shards * rows) for s in [i // 16 % shards]]
        self.pairs[:32] = [(i // 16 * 2, i // 16 * 2 + 1) for i in range(32)]

    def path(self, shard):
        return os.path.join(self.root, f"shard{shard}.f32")

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        views = []
        held = []
        for shard in self.pairs[i]:
            f = open(self.path(shard), "r+b")
            fcntl.flock(f, fcntl.LOCK_EX)
            held.append(f)
            f.seek(4 * self.dim * (i % self.rows))
            views.append(np.frombuffer(f.read(4 * self.dim), dtype="float32").copy())
            time.sleep(0.004)
        for f in held:
            f.close()
        return tuple(torch.from_numpy(v) for v in views)


def main():
    torch.manual_seed(0)
    root = tempfile.mkdtemp(prefix="views_")
    data = PairedViews(root)
    loader = DataLoader(data, batch_size=16, num_workers=2)
    net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(2):
        for step, (a, b) in enumerate(loader):
            za, zb = nn.functional.normalize(net(a)), nn.functional.normalize(net(b))
            loss = nn.functional.cross_entropy(za @ zb.T / 0.2, torch.arange(len(a)))
            opt.zero_grad()
            loss.backward()
            opt.step()
            print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
