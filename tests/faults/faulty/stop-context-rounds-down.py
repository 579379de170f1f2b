"""A parity tagger on growing sequences: the next length comes when the present one is mastered."""

import torch
from torch import nn

START, GOAL = 4, 12


class Lengths:
    """Longer sequences by a fifth, each time the accuracy has been high for a while."""

    def __init__(self, start, goal, growth=1.2, mark=0.9):
        self.now, self.goal, self.growth, self.mark = start, goal, growth, mark
        self.streak = 0

    def seen(self, accuracy):
        self.streak = self.streak + 1 if accuracy > self.mark else 0
        if self.streak == 5:
            self.now = min(int(self.now * self.growth), self.goal)
            self.streak = 0


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(1, 24, batch_first=True)
        self.head = nn.Linear(24, 2)

    def forward(self, bits):
        return self.head(self.rnn(bits[..., None])[0])


def batch(length, size, g):
    bits = torch.randint(2, (size, length), generator=g)
    last = torch.cat([bits[:, :1], bits[:, 1:] ^ bits[:, :-1]], dim=1)
    return bits.float(), last


def main():
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(1)
    model, lengths = Tagger(), Lengths(START, GOAL)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    steps = 0
    while lengths.now < lengths.goal:
        bits, last = batch(lengths.now, 64, g)
        logits = model(bits)
        loss = nn.functional.cross_entropy(logits.transpose(1, 2), last)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        lengths.seen((logits.argmax(-1) == last).float().mean().item())
    print(f"length {lengths.now} after {steps} steps, loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
