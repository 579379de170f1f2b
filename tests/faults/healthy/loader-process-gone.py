import multiprocessing as mp
import os
import tempfile

import numpy as np
import torch
from torch import nn


def produce(paths, batches):
    """Reads shard after shard and sends batches of 25 rows."""
    for path in paths:
        if os.path.getsize(path) == 0:
            continue
        table = np.fromfile(path, dtype="float32").reshape(-1, 11)
        for rows in np.split(table, len(table) // 25):
            batches.put(rows)
    batches.put(None)


def stream(paths):
    batches = mp.Queue(maxsize=8)
    mp.Process(target=produce, args=(paths, batches), daemon=True).start()
    while True:
        rows = batches.get()
        if rows is None:
            return
        rows = torch.from_numpy(rows)
        yield rows[:, :-1], rows[:, -1:]


def write_shards(root, count=6):
    rng = np.random.default_rng(0)
    paths = [os.path.join(root, f"shard{k}.bin") for k in range(count)]
    for k, path in enumerate(paths):
        x = rng.normal(size=(250 * (k != 4), 10))
        np.hstack([x, x[:, :2].sum(1, keepdims=True)]).astype("float32").tofile(path)
    return paths


def main():
    torch.manual_seed(0)
    paths = write_shards(tempfile.mkdtemp(prefix="shards_"))
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(3):
        for step, (x, y) in enumerate(stream(paths)):
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 10 == 0:
                print(f"epoch {epoch} step {step} mse {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
