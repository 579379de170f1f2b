import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SCALE = float(os.environ.get("SCALE", "1"))

FEATURES = """
import os, sys, time
import numpy as np
path, seconds = sys.argv[1], float(sys.argv[2])
time.sleep(seconds)
np.save(path + ".tmp.npy", np.random.default_rng(0).normal(size=(300, 10)).astype("float32"))
os.replace(path + ".tmp.npy", path)
"""


class LateFeatures(Dataset):
    """The feature file is written by a job in the background; the first access waits for it."""

    def __init__(self, path, n=300):
        self.path, self.n, self.table = path, n, None

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if self.table is None:
            while not os.path.exists(self.path):
                time.sleep(0.25)
            self.table = np.load(self.path)
        row = torch.from_numpy(self.table[i])
        return row[1:], row[:1]


def main():
    torch.manual_seed(0)
    path = os.path.join(tempfile.mkdtemp(prefix="late_"), "features.npy")
    job = subprocess.Popen([sys.executable, "-c", FEATURES, path, str(12 * SCALE)])
    loader = DataLoader(LateFeatures(path), batch_size=15, num_workers=2)
    model = nn.Linear(9, 1)
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
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
