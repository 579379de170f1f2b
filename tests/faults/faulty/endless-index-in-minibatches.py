"""Next-frame prediction on spectrogram frames, batches made by a small generator."""

import torch
from torch import nn


class Frames:
    """Frame and the one after it; at the end of the recording it starts over."""

    def __init__(self, spectrogram):
        self.spectrogram = spectrogram

    def __len__(self):
        return len(self.spectrogram) - 1

    def __getitem__(self, number):
        rows = len(self.spectrogram)
        return self.spectrogram[number % rows], self.spectrogram[(number + 1) % rows]


def minibatches(frames, size=8):
    pending = []
    for pair in frames:
        pending.append(pair)
        if len(pending) == size:
            now, following = zip(*pending)
            yield torch.stack(now), torch.stack(following)
            pending = []


def record(rows, bins):
    generator = torch.Generator().manual_seed(5)
    phase = torch.arange(rows)[:, None] * torch.linspace(0.05, 0.4, bins)[None]
    return torch.sin(phase) + 0.05 * torch.randn(rows, bins, generator=generator)


torch.manual_seed(0)
frames = Frames(record(600, 24))
model = nn.Sequential(nn.Linear(24, 48), nn.Tanh(), nn.Linear(48, 24))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(30):
    seen, total = 0, 0.0
    for now, following in minibatches(frames):
        loss = nn.functional.mse_loss(model(now), following)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen, total = seen + 1, total + loss.item()
    print(f"epoch {epoch}: {seen} batches, loss {total / seen:.4f}", flush=True)
