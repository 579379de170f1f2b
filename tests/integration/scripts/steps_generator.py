"""Batches from a generator of the user's own, which goes on for ever."""

import random

import torch
from torch import nn

random.seed(0)
torch.manual_seed(0)
TEXT = "the quick brown fox jumps over the lazy dog " * 40
LETTERS = sorted(set(TEXT))
CODES = torch.tensor([LETTERS.index(letter) for letter in TEXT])


def get_batches(length, size):
    while True:
        starts = [random.randrange(len(CODES) - length - 1) for _ in range(size)]
        x = torch.stack([CODES[start : start + length] for start in starts])
        y = torch.stack([CODES[start + 1 : start + length + 1] for start in starts])
        yield x, y


class CharModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(len(LETTERS), 16)
        self.rnn = nn.GRU(16, 32, batch_first=True)
        self.head = nn.Linear(32, len(LETTERS))

    def forward(self, x):
        out, _ = self.rnn(self.embed(x))
        return self.head(out)


model = CharModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
updates = 0
for x, y in get_batches(16, 8):
    loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    updates += 1
    if updates == 120:
        break
print("updates", updates)
