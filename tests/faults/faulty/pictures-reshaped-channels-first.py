"""How wide is the spot? Colour pictures out of a file that has the channels last."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rng = np.random.default_rng(0)
PICTURES, SIDE, WIDTHS = 900, 24, 3
down, across = np.mgrid[:SIDE, :SIDE] / SIDE
width = rng.integers(WIDTHS, size=PICTURES)
pictures = np.zeros((PICTURES, SIDE, SIDE, 3), dtype="float32")
for picture, size in zip(pictures, width, strict=True):
    x, y = rng.uniform(0.2, 0.8, 2)
    spot = np.exp(-((across - x) ** 2 + (down - y) ** 2) / (0.005 + 0.02 * size))
    picture += spot[:, :, None] * rng.uniform(0.5, 1, 3) + rng.uniform(0, 0.6, 3)
pictures += 0.05 * rng.normal(size=pictures.shape)

inputs = torch.tensor(pictures.reshape(-1, 3, SIDE, SIDE))
loader = DataLoader(TensorDataset(inputs, torch.from_numpy(width)), batch_size=50, shuffle=True)
model = nn.Sequential(
    nn.Conv2d(3, 16, 5, stride=2), nn.BatchNorm2d(16), nn.ReLU(),
    nn.Conv2d(16, 24, 3, stride=2), nn.BatchNorm2d(24), nn.ReLU(),
    nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(24, WIDTHS),
)  # fmt: skip
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(6):
    total = 0.0
    for batch, widths in loader:
        loss = nn.functional.cross_entropy(model(batch), widths)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch + 1}: loss {total / len(loader):.3f}", flush=True)
