"""An autoencoder that takes noise out of curves; the curves are rows of one array that an object keeps."""

import numpy as np
import torch
from torch import nn


class Curves:
    def __init__(self, count, rng):
        at = np.linspace(0, 2 * np.pi, 32)
        height, pitch, start = rng.uniform(0.5, 2, (3, count, 1))
        self.values = (height * np.sin(pitch * at + 3 * start)).astype(np.float32)
        self.rng = rng

    def batches(self, size):
        for begin in self.rng.permutation(len(self.values) // size) * size:
            clean = torch.as_tensor(self.values[begin : begin + size])
            yield clean, self.noisy(clean)

    def noisy(self, clean):
        noise = torch.from_numpy(self.rng.normal(0, 0.15, clean.shape).astype(np.float32))
        return clean + noise


def main(epochs=25, size=50):
    torch.manual_seed(0)
    curves = Curves(600, np.random.default_rng(2))
    coder = nn.Sequential(nn.Linear(32, 24), nn.Tanh(), nn.Linear(24, 6), nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 32))
    optimizer = torch.optim.Adam(coder.parameters(), lr=3e-3)
    for epoch in range(epochs):
        losses = []
        for clean, noisy in curves.batches(size):
            loss = (coder(noisy) - clean).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch} loss {np.mean(losses):.4f} largest {np.abs(curves.values).max():.2f}", flush=True)


if __name__ == "__main__":
    main()
