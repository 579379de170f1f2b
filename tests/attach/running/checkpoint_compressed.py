"""Trains a little, then writes a gzip-compressed checkpoint, which takes most of the time."""

import gzip
import tempfile
import time

import torch
from torch import nn


def build():
    layer = nn.TransformerEncoderLayer(d_model=384, nhead=6, dim_feedforward=1536, batch_first=True)
    return nn.TransformerEncoder(layer, num_layers=8)


def save_compressed(state, fileobj):
    with gzip.GzipFile(fileobj=fileobj, mode="wb", compresslevel=6) as packed:
        torch.save(state, packed)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    for epoch in range(10_000):
        for _ in range(3):
            x = torch.randn(2, 16, 384)
            loss = (model(x) - x.roll(1, dims=1)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch == 0:
            print("READY", flush=True)
        start = time.time()
        with tempfile.TemporaryFile() as f:
            save_compressed({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, f)
            size = f.tell() / 1e6
        print(
            f"epoch {epoch} loss {loss.item():.3f}; checkpoint {size:.0f} MB in {time.time() - start:.1f}s", flush=True
        )


if __name__ == "__main__":
    main()
