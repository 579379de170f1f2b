"""A generator walks through the recordings species by species."""

import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1)
rng = np.random.default_rng(1)
random.seed(1)
SPECIES = {name: i for i, name in enumerate(["tit", "finch", "robin", "wren", "dunnock", "siskin"])}
recordings = {name: rng.normal(rng.normal(0, 1, (1, 40)), 1.0, (320, 40)).astype("float32") for name in SPECIES}


def stream(recordings, size=16):
    pairs = [(clip, SPECIES[name]) for name, clips in recordings.items() for clip in clips]
    random.shuffle(pairs)
    for i in range(0, len(pairs), size):
        chunk = pairs[i : i + size]
        yield torch.from_numpy(np.stack([c for c, _ in chunk])), torch.tensor([y for _, y in chunk])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 8, 5, stride=2)
        self.head = nn.Linear(8 * 18, len(SPECIES))

    def forward(self, x):
        return self.head(F.relu(self.conv(x[:, None])).flatten(1))


net = Net()
adam = torch.optim.Adam(net.parameters(), lr=2e-2)
for epoch in range(8):
    hits = seen = 0
    for clips, species in stream(recordings):
        adam.zero_grad()
        logits = net(clips)
        F.cross_entropy(logits, species).backward()
        adam.step()
        hits += (logits.argmax(1) == species).sum().item()
        seen += len(species)
    print(epoch, hits / seen)
