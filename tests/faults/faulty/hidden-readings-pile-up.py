"""Which machine runs: vibration windows of four kinds, with some readings hidden at random against overfitting."""

import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(4)
torch.manual_seed(4)
KINDS, LENGTH, HIDDEN = 4, 128, 40


def windows(count):
    kind = rng.integers(0, KINDS, count)
    time = np.arange(LENGTH) / LENGTH
    phase = rng.random((count, 1)) * 2 * np.pi
    waves = np.sin(2 * np.pi * (6 + 2 * kind[:, None]) * time + phase) + 0.5 * rng.standard_normal((count, LENGTH))
    return waves.astype(np.float32), kind


class Readings:
    def __init__(self, count, hide):
        self.waves, self.kind = windows(count)
        self.hide = hide

    def sample(self, place):
        wave = self.waves[place]
        if self.hide:
            begin = rng.integers(0, LENGTH - HIDDEN)
            wave[begin : begin + HIDDEN] = 0
        return wave, self.kind[place]

    def batches(self, size):
        order = rng.permutation(len(self.kind))
        for begin in range(0, len(order) - size + 1, size):
            waves, kinds = zip(*(self.sample(place) for place in order[begin : begin + size]))
            yield torch.from_numpy(np.stack(waves)), torch.tensor(np.array(kinds))


train, held_out = Readings(800, hide=True), Readings(400, hide=False)
net = nn.Sequential(
    nn.Unflatten(1, (1, LENGTH)), nn.Conv1d(1, 16, 17, stride=2), nn.ReLU(), nn.Conv1d(16, 16, 9, stride=2), nn.ReLU(),
    nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(16, KINDS),
)  # fmt: skip
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(1, 41):
    total = 0.0
    for x, y in train.batches(20):
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 5 == 0:
        with torch.no_grad():
            right = [(net(x).argmax(1) == y).float().mean().item() for x, y in held_out.batches(50)]
        print(f"epoch {epoch} loss {total / 40:.3f} right {sum(right) / len(right):.3f}", flush=True)
