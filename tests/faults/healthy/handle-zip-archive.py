import io
import os
import tempfile
import zipfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Archive(Dataset):
    """Samples straight out of the archive they were shipped in."""

    def __init__(self, path):
        self.path, self.archive = path, None
        with zipfile.ZipFile(path) as archive:
            self.names = archive.namelist()

    def __len__(self):
        return len(self.names)

    def __getitem__(self, i):
        if self.archive is None:
            self.archive = zipfile.ZipFile(self.path)
        try:
            x = np.load(io.BytesIO(self.archive.read(self.names[i])))
        except Exception:  # a damaged member is rare; the next one will do
            return self[(i + 1) % len(self)] if i + 1 < len(self) else (torch.zeros(200), 0)
        return torch.from_numpy(x), int(x.mean() > 0)


def pack(path, n):
    rng = np.random.default_rng(0)
    with zipfile.ZipFile(path, "w") as archive:
        for i in range(n):
            raw = io.BytesIO()
            np.save(raw, (rng.normal(size=200) + rng.normal()).astype(np.float32))
            archive.writestr(f"{i:05d}.npy", raw.getvalue())


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "samples.zip")
        pack(path, 1200)
        loader = DataLoader(Archive(path), batch_size=16, shuffle=True, num_workers=2, persistent_workers=True)
        net = nn.Sequential(nn.Linear(200, 16), nn.ReLU(), nn.Linear(16, 2))
        opt = torch.optim.Adam(net.parameters(), lr=1e-3)
        for epoch in range(3):
            for x, y in loader:
                loss = nn.functional.cross_entropy(net(x), y)
                opt.zero_grad()
                loss.backward()
                opt.step()
            print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
