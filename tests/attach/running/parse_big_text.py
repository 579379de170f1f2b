"""Loads a large text table with numpy.genfromtxt, piece after piece, before the first epoch."""

import io
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def text_chunk(seed, rows=20_000, columns=24):
    """One part of the table as it lies on disk: comma separated text."""
    rng = np.random.default_rng(seed)
    buf = io.StringIO()
    np.savetxt(buf, rng.normal(size=(rows, columns)), delimiter=",", fmt="%.6f")
    return buf.getvalue()


def load_table(parts):
    text = [text_chunk(seed) for seed in range(2)]
    kept = []
    print("READY", flush=True)
    start = time.time()
    for part in range(parts):
        table = np.genfromtxt(io.StringIO(text[part % len(text)]), delimiter=",", dtype=np.float32)
        kept.append(table[part % 50 :: 50])  # a two-percent sample is enough for training
        if part % 2 == 0:
            print(f"loaded part {part}/{parts} ({time.time() - start:.0f}s)", flush=True)
    return torch.from_numpy(np.concatenate(kept))


def main():
    torch.set_num_threads(1)
    data = load_table(parts=2000)
    loader = DataLoader(TensorDataset(data[:, :-1], data[:, -1:]), batch_size=512, shuffle=True)
    model = nn.Sequential(nn.Linear(23, 128), nn.ReLU(), nn.Linear(128, 1))
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(1000):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
