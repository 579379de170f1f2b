import fcntl
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SCALE = float(os.environ.get("SCALE", "1"))

COMPACT = """
import fcntl, sys, time
with open(sys.argv[1], "r+b") as f:
    fcntl.flock(f, fcntl.LOCK_EX)
    print("compacting", flush=True)
    time.sleep(float(sys.argv[2]))
"""


class LockedTable(Dataset):
    def __init__(self, path, cols=9):
        self.path, self.cols, self.file = path, cols, None
        self.rows = os.path.getsize(path) // (4 * cols)

    def __len__(self):
        return self.rows

    def __getitem__(self, i):
        if self.file is None:
            self.file = open(self.path, "rb")
            fcntl.flock(self.file, fcntl.LOCK_SH)
        raw = os.pread(self.file.fileno(), 4 * self.cols, 4 * self.cols * i)
        row = torch.frombuffer(bytearray(raw), dtype=torch.float32)
        return row[1:], row[:1]


def main():
    torch.manual_seed(0)
    path = os.path.join(tempfile.mkdtemp(prefix="compact_"), "table.f32")
    np.random.default_rng(0).normal(size=(400, 9)).astype("float32").tofile(path)
    job = subprocess.Popen([sys.executable, "-c", COMPACT, path, str(12 * SCALE)], stdout=subprocess.PIPE, text=True)
    print(job.stdout.readline().strip(), flush=True)
    loader = DataLoader(LockedTable(path), batch_size=20, shuffle=True, num_workers=2)
    model = nn.Linear(8, 1)
    opt = torch.optim.SGD(model.parameters(), lr=1e-2)
    for epoch in range(3):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} mse {loss.item():.4f}", flush=True)
    job.wait()


if __name__ == "__main__":
    main()
