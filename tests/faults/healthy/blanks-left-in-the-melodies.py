"""Melodies with hidden notes: a small net guesses what stood there."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
NOTES, BEATS, BLANK = 36, 20, 36


def melodies(count, seed):
    rng = np.random.default_rng(seed)
    steps = np.random.default_rng(7).permutation(NOTES)
    tunes = np.zeros((count, BEATS), dtype=np.int64)
    tunes[:, 0] = rng.integers(0, NOTES, count)
    for beat in range(1, BEATS):
        stray = rng.random(count) < 0.1
        tunes[:, beat] = np.where(stray, rng.integers(0, NOTES, count), steps[tunes[:, beat - 1]])
    return torch.from_numpy(tunes)


class Guesser(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.notes = nn.Embedding(NOTES + 1, width)
        self.around = nn.Conv1d(width, 96, 5, padding=2)
        self.out = nn.Conv1d(96, NOTES + 1, 1)

    def forward(self, tunes):
        return self.out(torch.relu(self.around(self.notes(tunes).transpose(1, 2))))


def hidden(tunes, share=0.2):
    blank = torch.rand(tunes.shape) < share
    wanted = tunes.masked_fill(~blank, -100)
    tunes[blank] = BLANK
    return tunes, wanted


def main():
    torch.manual_seed(1)
    songs, model = melodies(1600, seed=1), Guesser()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(1, 41):
        total = 0.0
        for begin in (torch.randperm(16) * 100).tolist():
            tunes, wanted = hidden(songs[begin : begin + 100].clone())
            loss = F.cross_entropy(model(tunes), wanted, ignore_index=-100)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        if epoch % 10 == 0:
            print(f"epoch {epoch} loss {total / 16:.4f}")


if __name__ == "__main__":
    main()
