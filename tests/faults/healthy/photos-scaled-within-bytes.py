"""Which way do the stripes run? Small photos, brought to 0..1 and cut into batches by hand."""

import numpy as np
import torch
from torch import nn

SIZE, WAYS, BATCH = 16, 4, 50


def photos(count=1200):
    rng = np.random.default_rng(5)
    way = rng.integers(0, WAYS, count)
    down, across = np.mgrid[0:SIZE, 0:SIZE]
    angle, phase = (way * np.pi / WAYS)[:, None, None], rng.uniform(0, 6.28, (count, 1, 1))
    light = 110 + 60 * np.sin(1.2 * (np.cos(angle) * down + np.sin(angle) * across) + phase)
    light += rng.normal(0, 12, light.shape)
    return np.clip(light, 0, 254).astype(np.uint8), way


def prepared(images):
    ready = np.empty_like(images, dtype=np.float32)
    for number, image in enumerate(images):
        ready[number] = image / 255
    return torch.from_numpy(ready).unsqueeze(1)


class Stripes(nn.Module):
    def __init__(self):
        super().__init__()
        self.see = nn.Sequential(nn.Conv2d(1, 12, 5), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())
        self.say = nn.Linear(48, WAYS)

    def forward(self, images):
        return self.say(self.see(images.float()))


def main():
    torch.manual_seed(0)
    images, way = photos()
    x, y = prepared(images), torch.from_numpy(way)
    model = Stripes()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(12):
        order, total = torch.randperm(len(x)), 0.0
        for start in range(0, len(x), BATCH):
            rows = order[start : start + BATCH]
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total * BATCH / len(x):.4f}", flush=True)


if __name__ == "__main__":
    main()
