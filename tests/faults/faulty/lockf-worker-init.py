import fcntl
import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info


class Mapped(Dataset):
    def __init__(self, path, cols=13):
        self.path, self.cols = path, cols
        self.table = None

    def open(self):
        self.handle = open(self.path, "rb")
        fcntl.lockf(self.handle, fcntl.LOCK_SH)
        self.table = np.memmap(self.handle, dtype="float32", mode="r").reshape(-1, self.cols)

    def __len__(self):
        return os.path.getsize(self.path) // (4 * self.cols)

    def __getitem__(self, i):
        row = torch.from_numpy(np.array(self.table[i]))
        return row[1:], row[:1]


def open_table(worker_id):
    get_worker_info().dataset.open()


class Importer:
    def __init__(self, path):
        self.file = open(path, "wb+")
        fcntl.lockf(self.file, fcntl.LOCK_EX)

    def add(self, rows):
        self.file.write(rows.astype("float32").tobytes())
        self.file.flush()


def main():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    path = os.path.join(tempfile.mkdtemp(prefix="table_"), "rows.f32")
    importer = Importer(path)
    for _ in range(5):
        x = rng.normal(size=(200, 12))
        importer.add(np.hstack([x.sum(1, keepdims=True), x]))
    loader = DataLoader(
        Mapped(path),
        batch_size=20,
        shuffle=True,
        num_workers=2,
        worker_init_fn=open_table,
        multiprocessing_context="spawn",
        persistent_workers=True,
    )
    model = nn.Linear(12, 1)
    opt = torch.optim.Adam(model.parameters(), lr=3e-2)
    for epoch in range(4):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} mse {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
