import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SCALE = float(os.environ.get("SCALE", "1"))

PREPROCESS = """
import sys, time
import numpy as np
path, seconds = sys.argv[1], float(sys.argv[2])
rng = np.random.default_rng(0)
total, end, rounds = np.zeros((1000, 8)), time.monotonic() + seconds, 0
while time.monotonic() < end:
    total += np.linalg.qr(rng.normal(size=(1000, 8)))[0]
    rounds += 1
    time.sleep(0.01)
print("x" * 40000)
print("rounds", rounds > 0)
np.save(path, np.random.default_rng(1).normal(size=(1000, 9)).astype("float32"))
"""


def main():
    torch.manual_seed(0)
    path = os.path.join(tempfile.mkdtemp(prefix="prep_"), "table.npy")
    done = subprocess.run(
        [sys.executable, "-c", PREPROCESS, path, str(12 * SCALE)], capture_output=True, text=True, check=True
    )
    print(done.stdout.splitlines()[-1], flush=True)
    table = torch.from_numpy(np.load(path))
    loader = DataLoader(TensorDataset(table[:, 1:], table[:, :1]), batch_size=20, shuffle=True)
    model = nn.Linear(8, 1)
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
