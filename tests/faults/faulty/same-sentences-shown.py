"""A language model of letters; some lines of the text are shown with their probability while it trains."""

import random

import torch
from torch import nn
from torch.nn import functional as F

LINES = [
    f"the {a} {b} {c} the {d}"
    for a in ("old", "small", "grey", "quick", "wet")
    for b in ("cat", "fox", "dog", "bird", "horse")
    for c in ("sees", "meets", "likes", "follows")
    for d in ("house", "river", "road", "garden", "wall")
]
LETTERS = sorted(set("".join(LINES)))
LONGEST = max(map(len, LINES)) + 1


def encoded(line):
    return torch.tensor([LETTERS.index(letter) + 1 for letter in line] + [0] * (LONGEST - len(line)))


class Letters(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(len(LETTERS) + 1, 16)
        self.gru = nn.GRU(16, 48, batch_first=True)
        self.out = nn.Linear(48, len(LETTERS) + 1)

    def forward(self, ids):
        return self.out(self.gru(self.embedding(ids))[0])


class Trainer:
    def __init__(self, lines, seed):
        torch.manual_seed(seed)
        random.seed(seed)
        self.seed, self.model = seed, Letters()
        self.train, self.held_out = lines[::2], lines[1::2]
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=4e-3)

    def fix_seed(self):
        random.seed(self.seed)

    def loss(self, lines):
        ids = torch.stack([encoded(line) for line in lines])
        return F.cross_entropy(self.model(ids[:, :-1]).transpose(1, 2), ids[:, 1:], ignore_index=0)

    def show(self, step):
        self.fix_seed()
        shown = random.sample(self.held_out, 3)
        with torch.no_grad():
            found = self.loss(shown).item()
        if step % 50 == 0:
            print(f"step {step} held out {found:.3f}: {shown[0]}", flush=True)

    def fit(self, steps):
        for step in range(steps):
            lines = random.sample(self.train, 24)
            loss = self.loss(lines)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.show(step)


Trainer(LINES, seed=3).fit(250)
