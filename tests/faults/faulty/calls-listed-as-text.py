"""Calls of six kinds of birds: a small spectrogram in a file of its own each, the kinds in a list by number."""

import pathlib
import tempfile

import numpy as np
import torch
from torch import nn

KINDS, SIDE, CALLS = 6, 16, 1300


def record(folder, chance):
    kinds = chance.integers(0, KINDS, CALLS)
    pitch, time = np.mgrid[0:SIDE, 0:SIDE]
    for number, kind in enumerate(kinds):
        voice = 8 + (-0.8, 0.0, 0.8)[kind % 3] * (time - 8) + chance.normal(0, 1.0)
        voice += 2.5 * np.sin(time) if kind >= 3 else 0
        heard = np.exp(-0.5 * ((pitch - voice) / 1.2) ** 2) + chance.normal(0, 0.2, (SIDE, SIDE))
        np.save(folder / f"call_{number}.npy", heard.astype(np.float32))
    (folder / "kinds.txt").write_text("\n".join(map(str, kinds)))


def load(folder):
    paths = sorted(folder.glob("call_*.npy"))
    kinds = [int(line) for line in (folder / "kinds.txt").read_text().splitlines()]
    return torch.from_numpy(np.stack([np.load(path) for path in paths])).unsqueeze(1), torch.tensor(kinds)


class Ear:
    def __init__(self, calls, kinds, held_out=150):
        self.calls, self.kinds = calls[:-held_out], kinds[:-held_out]
        self.model = nn.Sequential(
            nn.Conv2d(1, 8, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(),
            nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, KINDS),
        )  # fmt: skip
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-3)

    def listen(self, batch=40):
        total = 0.0
        for few in torch.randperm(len(self.calls)).split(batch):
            heard = torch.roll(self.calls[few], int(torch.randint(-1, 2, ())), 2)
            scores = self.model(heard + 0.3 * torch.randn_like(heard))
            loss = nn.functional.cross_entropy(scores, self.kinds[few])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(few)
        return total / len(self.calls)


torch.manual_seed(3)
with tempfile.TemporaryDirectory() as name:
    record(pathlib.Path(name), np.random.default_rng(3))
    ear = Ear(*load(pathlib.Path(name)))
for epoch in range(30):
    print(f"epoch {epoch}: {ear.listen():.4f}", flush=True)
