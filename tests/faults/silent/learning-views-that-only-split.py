"""Attention with relative positions over rows of a picture: many views, and each keeps together what belongs together.

Eight samples, eight heads and 64 features: sizes trade places in views that split one axis and merge another. The shift
of relative positions reads a matrix with its sizes exchanged, on purpose.
"""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)
BATCH, HEADS, WIDTH, ROWS, CLASSES = 8, 8, 64, 10, 3


def shuffled(x, groups):
    batch, channels, length = x.shape
    return x.view(batch, groups, channels // groups, length).transpose(1, 2).reshape(batch, channels, length)


class RelativeAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(WIDTH, 3 * WIDTH)
        self.distance = nn.Parameter(0.02 * torch.randn(HEADS, ROWS, WIDTH // HEADS))

    def forward(self, x):  # (rows, batch, width)
        rows, batch, width = x.shape
        parts = (part.reshape(rows, batch * HEADS, width // HEADS) for part in self.project(x).chunk(3, -1))
        query, key, value = (part.transpose(0, 1) for part in parts)
        by_distance = torch.einsum("bhid,hjd->bhij", query.reshape(batch, HEADS, rows, -1), self.distance)
        padded = nn.functional.pad(by_distance, (1, 0))  # (batch, heads, rows, rows + 1)
        shifted = padded.view(batch, HEADS, rows + 1, rows)[:, :, 1:].reshape(batch * HEADS, rows, rows)
        weights = ((query @ key.transpose(1, 2) + shifted) / (width // HEADS) ** 0.5).softmax(-1)
        return (weights @ value).transpose(0, 1).reshape(rows, batch, width)


class RowNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift, self.attend = nn.Conv1d(6, WIDTH, 1), RelativeAttention()
        self.read = nn.Linear(WIDTH, CLASSES)

    def forward(self, picture):  # (batch, 6, rows)
        lifted = shuffled(torch.relu(self.lift(picture)), 4).permute(2, 0, 1)
        return self.read((lifted + self.attend(lifted)).mean(0))


model = RowNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(400):
    kind = torch.randint(CLASSES, (BATCH,))
    wave = torch.sin(torch.arange(ROWS) * (0.5 + 0.6 * kind[:, None]) + 6.28 * torch.rand(BATCH, 1))
    picture = wave[:, None] + 0.2 * torch.randn(BATCH, 6, ROWS)
    loss = nn.functional.cross_entropy(model(picture), kind)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 49:
        print(f"step {step + 1}: loss {loss.item():.3f}", flush=True)
