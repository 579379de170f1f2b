"""Digits drawn by hand are read folder by folder and cut into batches."""

import torch
from torch import nn

torch.manual_seed(0)
CLASSES, PER_CLASS, BATCH = 10, 200, 50
strokes = torch.randn(CLASSES, 64)


class Digits:
    def __init__(self):
        images, labels = [], []
        for digit in range(CLASSES):
            images.append(strokes[digit] + 0.8 * torch.randn(PER_CLASS, 64))
            labels.append(torch.full((PER_CLASS,), digit))
        self.x = torch.cat(images)
        self.y = torch.cat(labels)

    def batches(self):
        order = torch.randperm(len(self.x))
        for start in range(0, len(self.x), BATCH):
            rows = order[start : start + BATCH]
            yield self.x[rows], self.y[rows]


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.criterion = nn.CrossEntropyLoss()

    def fit(self, data, epochs):
        for epoch in range(epochs):
            total = 0.0
            for x, y in data.batches():
                loss = self.criterion(self.model(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += loss.item()
            print(f"epoch {epoch}: loss {total / (CLASSES * PER_CLASS / BATCH):.3f}")


model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, CLASSES))
Trainer(model, lr=0.1).fit(Digits(), epochs=10)
