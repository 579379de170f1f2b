"""A character model on contiguous windows; the generator wraps its start by a modulo."""

import torch
from torch import nn

TEXT = "the quick brown fox jumps over the lazy dog and runs away from the angry bear. " * 64


def windows(ids, size):
    start = 0
    while start + size + 1 <= ids.size(1):
        yield ids[:, start : start + size], ids[:, start + 1 : start + size + 1]
        start = (start + size) % (ids.size(1) - size)


class CharModel(nn.Module):
    def __init__(self, letters, hidden=32):
        super().__init__()
        self.embedding = nn.Embedding(letters, 16)
        self.rnn = nn.GRU(16, hidden, batch_first=True)
        self.head = nn.Linear(hidden, letters)

    def forward(self, x, state):
        out, state = self.rnn(self.embedding(x), state)
        return self.head(out), state.detach()


def main():
    torch.manual_seed(0)
    letters = sorted(set(TEXT))
    ids = torch.tensor([letters.index(letter) for letter in TEXT]).view(8, -1)
    model = CharModel(len(letters))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(4):
        state = None
        for number, (x, y) in enumerate(windows(ids, 20)):
            scores, state = model(x, state)
            loss = nn.functional.cross_entropy(scores.flatten(0, 1), y.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if number % 100 == 0:
                print(f"epoch {epoch} window {number} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
