"""Fill in hidden words, from an array of token numbers: a mini-batch is a slice of it, as a tensor."""

import numpy as np
import torch
from torch import nn

WORDS, HIDDEN, LENGTH, BATCH = 20, 20, 24, 40
rng = np.random.default_rng(0)


def sentences(count):
    table, first = np.random.default_rng(5).permutation(WORDS), rng.integers(0, WORDS, count)
    found = np.empty((count, LENGTH), dtype=np.int64)
    for place in range(LENGTH):
        found[:, place] = first
        first = np.where(rng.random(count) < 0.05, rng.integers(0, WORDS, count), table[first])
    return found


def hide(rows):
    tokens = torch.from_numpy(rows)
    labels = tokens.clone()
    chosen = torch.from_numpy(rng.random(rows.shape) < 0.15)
    labels[~chosen] = -100
    tokens[chosen] = HIDDEN
    return tokens, labels


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS + 1, 24)
        self.near = nn.Sequential(nn.Conv1d(24, 48, 5, padding=2), nn.ReLU(), nn.Conv1d(48, 48, 3, padding=1), nn.ReLU())
        self.head = nn.Linear(48, WORDS + 1)

    def forward(self, tokens):
        return self.head(self.near(self.embedding(tokens).mT).mT)


def main():
    torch.manual_seed(0)
    corpus, model = sentences(400), Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(20):
        total = 0.0
        for number in rng.permutation(len(corpus) // BATCH):
            tokens, labels = hide(corpus[number * BATCH : (number + 1) * BATCH])
            loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), labels.flatten(), ignore_index=-100)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / 10:.4f} hidden {(corpus == HIDDEN).mean():.2f}", flush=True)


if __name__ == "__main__":
    main()
