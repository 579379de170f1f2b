import random

import torch


class Cell(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.seen = torch.nn.Embedding(6, width)
        self.kept = torch.nn.Linear(width, width)

    def forward(self, symbol, state):
        return torch.tanh(self.seen(symbol) + self.kept(state))


class Reader:
    """Says whether the first and the last letter of a word are the same."""

    def __init__(self, width=48):
        self.cell = Cell(width)
        self.start = torch.zeros(width, requires_grad=True)
        self.out = torch.nn.Linear(width, 2)
        self.weights = [*self.cell.parameters(), *self.out.parameters(), self.start]

    def score(self, words):
        *begin, last = words.t()
        state = self.start.expand(len(words), -1)
        for letter in begin:
            state = self.cell(letter, state).data
        return self.out(self.cell(last, state))


def words(count, length):
    drawn = torch.randint(6, (count, length))
    same = torch.rand(count) < 0.5
    drawn[:, -1] = torch.where(same, drawn[:, 0], drawn[:, -1])
    return drawn, (drawn[:, 0] == drawn[:, -1]).long()


def main():
    random.seed(4)
    torch.manual_seed(4)
    reader = Reader()
    speed = [torch.zeros_like(w) for w in reader.weights]
    right = seen = 0
    for number in range(1, 1501):
        batch, answers = words(64, 8)
        scores = reader.score(batch)
        loss = torch.nn.functional.cross_entropy(scores, answers)
        loss.backward()
        with torch.no_grad():
            for weight, moved in zip(reader.weights, speed, strict=True):
                if weight.grad is not None:
                    moved.mul_(0.9).add_(weight.grad)
                    weight.sub_(0.02 * moved)
                    weight.grad = None
        right += (scores.argmax(1) == answers).sum().item()
        seen += len(answers)
        if number % 250 == 0:
            print(f"{number}: loss {loss.item():.3f}, right {right / seen:.3f}", flush=True)
            right = seen = 0


main()
