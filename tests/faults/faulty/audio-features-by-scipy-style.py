"""Frames pass through a learned filter bank, are compressed in numpy, and go on to a recurrent classifier."""

import numpy as np
import torch
from torch import nn


class FilterBank(nn.Module):
    def __init__(self, filters=16):
        super().__init__()
        self.conv = nn.Conv1d(1, filters, 16, stride=8)

    def forward(self, wave):
        return self.conv(wave[:, None]).transpose(1, 2)


class Recogniser(nn.Module):
    def __init__(self):
        super().__init__()
        self.bank = FilterBank()
        self.rnn = nn.GRU(16, 24, batch_first=True)
        self.out = nn.Linear(24, 3)

    def forward(self, wave):
        energy = compress(self.bank(wave))
        _, hidden = self.rnn(energy)
        return self.out(hidden[0])


def compress(frames):
    power = np.square(np.asarray(frames.tolist(), dtype=np.float32))
    return torch.as_tensor(np.log(power + 1e-3))


def words(count):
    g = torch.Generator().manual_seed(3)
    y = torch.randint(0, 3, (count,), generator=g)
    t = torch.arange(160.0)
    wave = torch.sin(t * (0.15 + 0.2 * y[:, None]) + 6 * torch.rand(count, 1, generator=g))
    return wave + 0.3 * torch.randn(count, 160, generator=g), y


def main():
    torch.manual_seed(0)
    wave, y = words(600)
    model = Recogniser()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(8):
        order, total = torch.randperm(len(y)), 0.0
        for rows in order.split(30):
            loss = nn.functional.cross_entropy(model(wave[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / 20:.4f}", flush=True)


if __name__ == "__main__":
    main()
