"""A feature cache whose workers wait for a file lock that the training process itself never lets go."""

import fcntl
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

READY = 2_000
COUNT = 4_000


def compute_feature(index):
    generator = torch.Generator().manual_seed(index)
    return torch.randn(64, generator=generator)


class CachedFeatures(Dataset):
    def __init__(self, folder):
        self.folder = folder

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        path = self.folder / f"{index}.pt"
        if not path.exists():
            self.fill(path, index)
        feature = torch.load(path)
        return feature, (feature[0] * feature[1] > 0).long()

    def fill(self, path, index):
        """One process at a time adds to the cache."""
        with open(self.folder / "cache.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            torch.save(compute_feature(index), path)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="features-") as name:
        folder = Path(name)
        lock = open(folder / "cache.lock", "w")
        fcntl.flock(lock, fcntl.LOCK_EX)  # another training must not warm up the same cache
        for index in range(READY):
            torch.save(compute_feature(index), folder / f"{index}.pt")
        print(f"cache is warm: {READY} features", flush=True)

        loader = DataLoader(CachedFeatures(folder), batch_size=16, num_workers=2)
        model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 2))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        for epoch in range(5):
            for step, (feature, label) in enumerate(loader):
                loss = nn.functional.cross_entropy(model(feature), label)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                if step % 25 == 0:
                    print(f"epoch {epoch}  step {step}  loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
