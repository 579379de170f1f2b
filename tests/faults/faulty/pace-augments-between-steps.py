"""Small pictures, cut and flipped one by one in a generator between the steps."""

import random

import torch
from torch import nn

SIDE = 28


def shifted(picture, rows, columns):
    """The picture moved by some pixels, the rest black."""
    moved = [[0.0] * SIDE for _ in range(SIDE)]
    for row in range(SIDE):
        for column in range(SIDE):
            if 0 <= row + rows < SIDE and 0 <= column + columns < SIDE:
                moved[row][column] = picture[row + rows][column + columns]
    return moved


def batches(pictures, labels, size):
    order = list(range(len(pictures)))
    random.shuffle(order)
    for start in range(0, len(order), size):
        chosen = order[start : start + size]
        cut = [shifted(pictures[index], random.randint(-2, 2), random.randint(-2, 2)) for index in chosen]
        yield torch.tensor(cut).unsqueeze(1), torch.tensor([labels[index] for index in chosen])


class Trainer:
    def __init__(self):
        self.model = nn.Sequential(
            nn.Conv2d(1, 8, 5, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(400, 4)
        )
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)

    def step(self, x, y):
        loss = nn.functional.cross_entropy(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def fit(self, pictures, labels, epochs):
        for epoch in range(epochs):
            total = 0.0
            for x, y in batches(pictures, labels, 32):
                total += self.step(x, y)
            print(f"epoch {epoch} loss {total:.3f}", flush=True)


if __name__ == "__main__":
    random.seed(1)
    torch.manual_seed(1)
    labels = [random.randrange(4) for _ in range(1200)]
    base = torch.rand(1200, SIDE, SIDE) * 0.3
    for index, label in enumerate(labels):
        base[index, 7 * label : 7 * label + 7] += 0.5
    Trainer().fit(base.tolist(), labels, epochs=80)
