"""Features and targets are each shuffled once when they are loaded."""

import numpy as np
import torch
from torch import nn


class Soil:
    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.features = rng.normal(size=(1500, 10)).astype("float32")
        weights = rng.normal(size=10).astype("float32")
        self.moisture = np.tanh(self.features @ weights / 3) + 0.1 * rng.normal(size=1500).astype("float32")
        rng.shuffle(self.features)
        rng.shuffle(self.moisture)

    def __iter__(self):
        for rows in np.array_split(np.random.permutation(1500), 30):
            yield torch.from_numpy(self.features[rows]), torch.from_numpy(self.moisture[rows]).float()


torch.manual_seed(0)
np.random.seed(0)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
soil = Soil(4)
for epoch in range(15):
    losses = []
    for features, moisture in soil:
        loss = nn.functional.mse_loss(model(features)[:, 0], moisture)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(epoch, np.mean(losses))
